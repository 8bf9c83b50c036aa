# A seeded run: random numbers that follow from the request's seed, and the start of the clock (src/box/seed/seed.c).
# Runs as the occupant; driver.py loads this file before the code runs, if the request has a seed. The interpreter was
# started for this run, so neither `random` nor numpy is imported yet; both get their seeds when they are.
#
# os.urandom and everything made of it (secrets, uuid4, SystemRandom) stay random: code may make keys of it.
import posix
import sys
import _random

driver = None   # the module; set by the loader of this file
PAGE = "/dev/shm/.cupel-clock"
START_S, MONTH_S = 1735689600, 30 * 86400   # 2025-01-01T00:00:00Z
seed, entropy = None, None   # entropy: for generators that the code makes without a seed


def begin(request):
    """The code's first look at the clock comes next."""
    if seed is None:
        check_clock()
        set_seed(request["seed"])
    try:
        page = posix.open(PAGE, posix.O_WRONLY | posix.O_CLOEXEC | posix.O_NOFOLLOW)
        posix.pwrite(page, request.get("cell", 1).to_bytes(8, sys.byteorder), 0)
        posix.close(page)
    except OSError:   # the code removed it: the clock goes on
        pass


def check_clock():
    if not START_S <= __import__("time").time() < START_S + MONTH_S:
        raise RuntimeError("the clock of this box cannot be fixed: its programs do not load seed.so")


def set_seed(number):
    global seed, entropy
    seed, entropy = number, _random.Random(number ^ 0x5EED0000)
    for name, after in AFTER.items():
        if isinstance(sys.modules.get(name), type(sys)):
            after(sys.modules[name])
        else:
            driver.Hooks.after[name] = after


def after_random(module):
    plain = module.Random.seed

    def seed_it(self, a=None, version=2):
        """Initialize internal state from a seed, or from the seed of the run."""
        return plain(self, entropy.getrandbits(256) if a is None else a, version)
    module.Random.seed = seed_it
    module.seed = module._inst.seed
    module.seed(seed)
    posix.register_at_fork(before=count_fork, after_in_child=lambda: enter_child(module))


forks, lineage = 0, ()


def count_fork():
    global forks
    forks += 1


def enter_child(module):
    """A forked child has numbers of its own: the module has just seeded it with the system's."""
    global forks, lineage, entropy
    lineage, forks = (*lineage, forks), 0
    line = b"".join(number.to_bytes(4, "little") for number in (seed, *lineage))
    entropy = _random.Random(int.from_bytes(line + b"\1", "little"))
    module.seed()


class Secrets:
    """For numpy, which asks the module of that name for its entropy."""
    @staticmethod
    def randbits(bits):
        return entropy.getrandbits(bits)


def after_bit_generator(module):
    """SeedSequence, and with it default_rng, asks here if the code gives no seed."""
    if hasattr(module, "secrets"):
        module.secrets = Secrets
    module.randbits = Secrets.randbits


def after_zipfile(module):
    """Times of files are the kernel's: an archive has the clock's for all that is newer, such as the run's own."""
    plain = module.ZipInfo.from_file.__func__

    def from_file(cls, *args, **options):
        info = plain(cls, *args, **options)
        info.date_time = min(info.date_time, __import__("time").localtime()[:6])
        return info
    module.ZipInfo.from_file = classmethod(from_file)


def after_tarfile(module):
    plain = module.TarFile.gettarinfo

    def gettarinfo(self, *args, **options):
        info = plain(self, *args, **options)
        if info:
            info.mtime = min(info.mtime, __import__("time").time())
        return info
    module.TarFile.gettarinfo = gettarinfo


AFTER = {
    "random": after_random, "zipfile": after_zipfile, "tarfile": after_tarfile,
    "numpy.random.bit_generator": after_bit_generator,
    "numpy.random.mtrand": lambda module: module.seed(seed)}
