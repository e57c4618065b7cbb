"""Summarises the IEEE's public register of network card manufacturers.

The register comes as CSV on standard input, with one line of titles.
"""

import collections
import csv
import sys

blocks = collections.Counter()
countries = collections.Counter()
words = collections.Counter()
for row in csv.DictReader(sys.stdin):
    name = row["Organization Name"].strip()
    blocks[name] += 1
    # Addresses end with a country of two letters, if they are given at all.
    tail = row["Organization Address"].split()
    if len(tail) > 1:
        country = next((word for word in reversed(tail) if len(word) == 2 and word.isupper()), "?")
        countries[country] += 1
    words.update(word.strip(",.").lower() for word in name.split())

total = sum(blocks.values())
print(f"{total} blocks of addresses, {len(blocks)} organisations")
for name, count in blocks.most_common(5):
    print(f"  {name[:38]:38} {count:5} {'#' * (count // 40)}")
print("by country: " + ", ".join(f"{code} {count}" for code, count in countries.most_common(8)))
largest = sum(count for _, count in blocks.most_common(100))
print(f"the largest 100 hold {largest / total:.1%}, and {sum(c == 1 for c in blocks.values())} hold one each")
print("in names: " + ", ".join(word for word, _ in words.most_common(8)))
