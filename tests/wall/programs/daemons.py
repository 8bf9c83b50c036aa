# row: 78 55
# about: daemons that hope to outlive the run
# control: none, it would leave them on the host
# status: ok
import time

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(1)
            open("/workspace/late", "w").write("late")
            time.sleep(300)
        os._exit(0)
check("parent_goes_on", True)
