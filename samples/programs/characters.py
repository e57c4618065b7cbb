"""Summarises the Unicode character database, which comes on standard input."""

import collections
import sys

kinds = {
    "Lo": "letters of scripts without case",
    "Ll": "lower-case letters",
    "Lu": "upper-case letters",
    "So": "symbols",
    "Mn": "marks that combine",
    "Nd": "decimal digits",
}
counts = collections.Counter()
words = collections.Counter()
longest = ""
digits = []
for row in sys.stdin:
    code, name, category, *_ = row.rstrip("\n").split(";")
    counts[category] += 1
    words.update(name.split())
    longest = max(longest, name, key=len)
    if category == "Nd" and name.endswith("DIGIT SEVEN"):
        digits.append(chr(int(code, 16)))

total = sum(counts.values())
print(f"{total} characters in {len(counts)} categories")
for category, count in counts.most_common(6):
    share = "#" * round(60 * count / total)
    print(f"{kinds.get(category, category):32}{count:7} {share}")
print(f"the most used words in names: {', '.join(word for word, _ in words.most_common(5))}")
print(f"the longest name has {len(longest)} letters: {longest.lower()}")
print(f"the digit seven is written in {len(digits)} ways: {' '.join(digits[:24])} ...")
