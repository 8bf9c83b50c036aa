# row: 76
# about: eight burners share one allowance of cpu time
# control: none, time is not a thing one reaches
# limits: {"cpu_s": 1, "timeout_s": 30, "cpus": 2}
# status: cpu_limit
for _ in range(7):
    if os.fork() == 0:
        break
while True:
    pass
