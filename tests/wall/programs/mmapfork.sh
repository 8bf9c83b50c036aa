# row: 80
# about: memory, forks and a starved quota at once: slow to die unless the limits are lifted
# control: none, it would take the host
# limits: {"cpus": 0.05, "memory_bytes": 134217728, "timeout_s": 3, "cpu_s": 60}
# status: timeout memory_limit error ok
# weak: timeout memory_limit error ok killed pids_limit cpu_limit
cd /tmp
exec stress-ng --mmapfork 4 --timeout 60 --temp-path /tmp --quiet
