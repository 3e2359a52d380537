"""How the page looks."""

CSS = """
:root { color-scheme: light dark; --back: #ffffff; --text: #1b1b1b; --soft: #5c6468;
  --line: #d9dde0; --panel: #f5f6f7; --accent: #134e6f; }
@media (prefers-color-scheme: dark) {
  :root { --back: #15181a; --text: #e6e8e9; --soft: #9aa4a9; --line: #343a3e;
    --panel: #1e2326; --accent: #7fc4d8; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .75rem; }
h2 { font-size: 1.25rem; margin: 2.75rem 0 .75rem; }
h3 { font-size: 1.02rem; margin: 1.5rem 0 .5rem; }
p { max-width: 75ch; margin: 0 0 1rem; }
ul { max-width: 85ch; padding-left: 1.25rem; margin: 0 0 1rem; }
li { margin: .25rem 0; }
.summary { border-left: 4px solid var(--accent); background: var(--panel); max-width: none;
  padding: .75rem 1rem; font-weight: 600; border-radius: 0 6px 6px 0; }
.scroll + p { margin-top: .75rem; }
.note { color: var(--soft); font-style: italic; }
table { border-collapse: separate; border-spacing: 2px; width: 100%;
  font-variant-numeric: tabular-nums; font-size: .92rem; }
thead th { position: sticky; top: 0; z-index: 1; background: var(--back);
  border-bottom: 2px solid var(--line); padding: .5rem .4rem; }
th { text-align: center; font-weight: 600; }
th:first-child { text-align: left; white-space: nowrap; padding: 0 .75rem 0 0; }
th small { font-weight: 400; color: var(--soft); }
tbody + tbody::before { content: ""; display: block; height: 8px; }
td { position: relative; text-align: center; line-height: 1.25; padding: .3rem 1.15rem .3rem .4rem;
  border-radius: 4px; white-space: nowrap; }
td small { font-size: .78em; opacity: .85; margin-left: .1em; }
td .paper { display: block; font-size: .78em; opacity: .85; }
td .sign { position: absolute; top: .15rem; right: .3rem; font-size: .75em; opacity: .85; }
td.none { color: var(--soft); background: var(--panel); }
td.differs { box-shadow: inset 0 0 0 2.5px #f08a00; }
td.violated { box-shadow: inset 0 0 0 2.5px #e00000; }
.legend { max-width: none; font-size: .85rem; color: var(--soft); margin-top: .6rem; }
.legend span { margin-right: 1.25rem; white-space: nowrap; }
.legend .differs { color: #f08a00; }
.legend .violated { color: #e00000; }
details { font-size: .88rem; margin-top: 1rem; }
details summary { cursor: pointer; color: var(--accent); }
.facts { width: auto; border-collapse: collapse; margin-top: .5rem; }
.facts td, .facts th { text-align: left; padding: .2rem 1.25rem .2rem 0; position: static;
  white-space: normal; border-bottom: 1px solid var(--line); border-radius: 0; }
.facts td.number, .facts th.number { text-align: right; }
figure { margin: 0 0 1rem; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; background: #ffffff;
  border: 1px solid var(--line); border-radius: 6px; padding: 10px; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .5rem; max-width: 95ch; }
dl { font-size: .88rem; columns: 2 22rem; margin: 0; }
dl div { display: flex; gap: .75rem; break-inside: avoid; padding: .15rem 0; }
dt { color: var(--soft); flex: 0 0 8.5rem; }
dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 820px) { .scroll { overflow-x: auto; } }
@media print { main { max-width: none; padding: 0; } thead th { position: static; }
  td { print-color-adjust: exact; } figure { break-inside: avoid; } }
"""
