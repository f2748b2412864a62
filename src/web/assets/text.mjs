// @ts-check
// Text of slots, made harmless to look at, and times.

// Characters that change how others are shown, or are not to be seen: they are shown by their number.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb]/gu;

/** @param {unknown} text */
export const visible = (text) =>
  String(text).replace(HIDDEN, (c) => `⟨U+${c.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}⟩`);

/** @param {unknown} text */
export const oneLine = (text) => visible(text).replace(/\s+/g, " ").trim();

/** How long ago, as the terminal shows it. @param {string} since @param {number} now */
export function age(since, now) {
  const s = Math.max(0, Math.floor((now - Date.parse(since)) / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${String(s % 60).padStart(2, "0")}`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${String(Math.floor((s % 3600) / 60)).padStart(2, "0")}`;
  return `${Math.floor(s / 86400)}d`;
}

/**
 * The input of a tool: what it is mostly about first, then the rest by name.
 * @param {Record<string, unknown>} input
 * @returns {[string, string][]}
 */
export function parts(input) {
  return Object.entries(input).map(([key, value]) => [
    oneLine(key),
    visible(typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  ]);
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/**
 * A line of a screen with its colours as escape sequences: runs of text, each with its classes. Every other sequence is
 * left out.
 * @param {string} line
 * @returns {{text: string, classes: string, colour: string | null}[]}
 */
export function runs(line) {
  const found = [];
  let style = plain();
  for (const piece of line.split(/(\u001b\[[0-9;:]*m)/u)) {
    const codes = /^\u001b\[([0-9;:]*)m$/u.exec(piece);
    if (codes !== null) {
      style = styled(style, codes[1].split(/[;:]/).map(Number));
    } else if (piece !== "") {
      found.push({ text: visible(piece), classes: [...style.marks, style.name].filter(Boolean).join(" "), colour: style.colour });
    }
  }
  return found;
}

/** @returns {{marks: Set<string>, name: string, colour: string | null}} */
const plain = () => ({ marks: new Set(), name: "", colour: null });

/** @param {ReturnType<typeof plain>} style @param {number[]} codes */
function styled(style, codes) {
  let next = { ...style, marks: new Set(style.marks) };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) next = plain();
    else if (code === 1) next.marks.add("bold");
    else if (code === 2) next.marks.add("dim");
    else if (code === 3) next.marks.add("italic");
    else if (code === 4) next.marks.add("underline");
    else if (code === 7) next.marks.add("inverse");
    else if (code === 22) { next.marks.delete("bold"); next.marks.delete("dim"); }
    else if (code === 23) next.marks.delete("italic");
    else if (code === 24) next.marks.delete("underline");
    else if (code === 27) next.marks.delete("inverse");
    else if (code >= 30 && code <= 37) [next.name, next.colour] = [`fg-${COLOURS[code - 30]}`, null];
    else if (code >= 90 && code <= 97) [next.name, next.colour] = [`fg-${COLOURS[code - 90]}`, null];
    else if (code === 39) [next.name, next.colour] = ["", null];
    else if (code === 38 && codes[at + 1] === 2) {
      [next.name, next.colour] = ["", `rgb(${codes.slice(at + 2, at + 5).map((c) => c & 255).join(" ")})`];
      at += 4;
    } else if (code === 38 && codes[at + 1] === 5) {
      const index = codes[at + 2];
      if (index < 16) [next.name, next.colour] = [`fg-${COLOURS[index % 8]}`, null];
      at += 2;
    } else if (code === 48) at += codes[at + 1] === 2 ? 4 : 2;
  }
  return next;
}
