# row: 57
# about: the classic, which leaves its children behind
# control: none, it would take the host
# limits: {"pids": 64, "timeout_s": 2}
# status: ok error timeout pids_limit cpu_limit
# hits: pids
bomb() { bomb | bomb & }
bomb
sleep 1
