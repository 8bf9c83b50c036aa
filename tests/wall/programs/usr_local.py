# row: 6
# about: /usr/local, which is the administrator's own and no part of the image
# control: root
# boxes: every
seen = os.listdir("/usr/local") if os.path.isdir("/usr/local") else []
probe("usr_local", seen, seen[:5])
