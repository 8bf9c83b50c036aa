# row: 59 68
# about: shared anonymous memory held by several processes
# control: user
# limits: {"memory_bytes": 134217728}
# status: memory_limit
# weak: error
import mmap

areas = []
for step in range(40):
    area = mmap.mmap(-1, 8 << 20)
    for at in range(0, 8 << 20, 4096):
        area[at] = 1
    areas.append(area)
probe("memory_320m", True)
