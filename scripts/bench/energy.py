"""Reads what the processor reports of its energy (RAPL): Intel's since 2011 and AMD's since Zen,
where the system lets this user read it. A run's joules are those of the whole machine meanwhile."""
import glob

ABSENT = "energy: not measured, the system reports none (no readable /sys/class/powercap/*/energy_uj)"


def read_int(path):
    with open(path) as f:
        return int(f.read())


def counters(root="/sys/class/powercap"):
    """{package: (microjoules, where it begins again)}; {}: none is reported."""
    found = {}
    for folder in glob.glob(f"{root}/*-rapl:[0-9]") + glob.glob(f"{root}/*-rapl:[0-9][0-9]"):
        try:
            found[folder] = (read_int(f"{folder}/energy_uj"), read_int(f"{folder}/max_energy_range_uj"))
        except (OSError, ValueError):
            pass
    return found


def joules_between(before, after):
    """None: none is reported. A counter that began again did so once."""
    shared = before.keys() & after.keys()
    if not shared:
        return None
    return sum(after[k][0] - before[k][0] + (after[k][1] if after[k][0] < before[k][0] else 0) for k in shared) / 1e6
