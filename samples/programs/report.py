"""Reports on the IEEE's public register of network card manufacturers.

Reads `data/oui.csv`; writes a report as `out/report.md` and `out/report.json`,
and a chart as `out/chart.svg`. Needs nothing but Python itself.
"""

import collections
import csv
import html
import json
import pathlib

with open("data/oui.csv", newline="", encoding="utf-8") as source:
    rows = list(csv.DictReader(source))

blocks = collections.Counter(row["Organization Name"].strip() for row in rows)
registries = collections.Counter(row["Registry"] for row in rows)
# Ties are broken by name, so that everybody who counts finds the same ten.
top = sorted(blocks.items(), key=lambda item: (-item[1], item[0]))[:10]
single = sum(count == 1 for count in blocks.values())

out = pathlib.Path("out")
out.mkdir(exist_ok=True)
report = {
    "rows": len(rows),
    "organisations": len(blocks),
    "single": single,
    "registries": registries,
    "top": top,
}
(out / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")

lines = [
    "# Who holds the blocks of network addresses",
    "",
    f"{len(rows)} blocks are held by {len(blocks)} organisations; {single} of them hold one each.",
    "",
    "| organisation | blocks | share |",
    "|---|---:|---:|",
]
lines += [f"| {name.replace('|', ' ')} | {count} | {count / len(rows):.1%} |" for name, count in top]
(out / "report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")

WIDTH, BAR, LEFT = 860, 26, 280
scale = (WIDTH - LEFT - 70) / top[0][1]
shapes = []
for at, (name, count) in enumerate(top):
    y = 50 + at * BAR
    shapes.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{html.escape(name[:38])}</text>')
    shapes.append(f'<rect x="{LEFT}" y="{y}" width="{count * scale:.1f}" height="{BAR - 8}" fill="#3b6ea5"/>')
    shapes.append(f'<text x="{LEFT + count * scale + 6:.1f}" y="{y + 15}">{count}</text>')
svg = [
    f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{60 + len(top) * BAR}"',
    ' font-family="sans-serif" font-size="13">',
    '<rect width="100%" height="100%" fill="white"/>',
    '<text x="20" y="30" font-size="17">Blocks of network addresses by organisation</text>',
    *shapes,
    "</svg>",
]
(out / "chart.svg").write_text("\n".join(svg) + "\n", encoding="utf-8")
print(f"{len(rows)} rows read, {len(list(out.iterdir()))} files written")
