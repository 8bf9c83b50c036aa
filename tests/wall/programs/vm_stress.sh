# row: 80
# about: many mappings under a starved quota
# control: none, it would take the host
# limits: {"cpus": 0.05, "memory_bytes": 134217728, "timeout_s": 2, "cpu_s": 60}
# status: timeout memory_limit error ok
# weak: timeout memory_limit error ok killed pids_limit cpu_limit
cd /tmp
exec stress-ng --vm 4 --vm-bytes 200M --timeout 60 --temp-path /tmp --quiet
