"""The benchmark's rows: readings of many sensors, one each every ten minutes, in the order of time."""

import random
from datetime import datetime, timedelta, timezone
from pathlib import Path

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
STEP = timedelta(minutes=10)
STEPS_A_DAY = 144
# Sensors are named by a number of six digits, so that pgbench, whose variables are numbers, can name one.
FIRST_SENSOR = 100_000


def write_rows(path: Path, rows: int, sensors: int, noisy: bool) -> None:
    """Writes `rows` rows as CSV; the same arguments give the same file. A file that is there is left as it is.

    `noisy` rows are the worst case for a storage that compresses: each reading up to a minute late, to the microsecond,
    and its value a double of random digits.
    """
    if path.exists():
        return
    dice = random.Random(20260101)
    names = [str(FIRST_SENSOR + s) for s in range(sensors)]
    # Values in hundredths: a random walk from a level of its own for each sensor.
    levels = [dice.randrange(1500, 2500) for _ in range(sensors)]
    unfinished = path.with_suffix(".part")
    with unfinished.open("w") as out:
        left, now = rows, START
        while left > 0:
            day, ts = now.date().isoformat(), now.isoformat()
            lines = []
            for s in range(min(sensors, left)):
                level = levels[s] = levels[s] + int(dice.random() * 21) - 10
                odd = dice.random()
                status = "ok" if odd < 0.98 else "late" if odd < 0.995 else "fault"
                value = level / 100
                if noisy:
                    ts = (now + timedelta(microseconds=int(dice.random() * 60_000_000))).isoformat()
                    value += dice.random()
                lines.append(f"{names[s]},{day},{ts},{value},{status}\n")
            out.writelines(lines)
            left -= len(lines)
            now += STEP
    unfinished.rename(path)


def whole_days(rows: int, sensors: int) -> list:
    """The days on which every sensor has all its 144 readings, as dates; the first day where there is none."""
    days = (rows // sensors) // STEPS_A_DAY
    return [(START + timedelta(days=d)).date().isoformat() for d in range(max(days, 1))]
