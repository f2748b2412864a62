// @ts-check
// A screen of a slot as text with colours, of now or of an earlier moment.

import { html } from "./vendor/htm-preact.mjs";
import { runs } from "./text.mjs";

/** @param {{screen: any, name: string, place?: any, held?: boolean, keys?: any}} props */
export function Screen({ screen, name, place, held, keys }) {
  return html`<pre ref=${place} class=${`screen${held ? " typed" : ""}`} ...${keys ?? {}} tabindex="0" aria-label="${name}, ${screen.cols} columns, ${screen.rows} rows">${screen.lines.map(
    (/** @type {string} */ line) => html`<div>${runs(line).map((run) => html`<span class=${run.classes} style=${run.colour ? { color: run.colour } : null}>${run.text}</span>`)}${"\n"}</div>`,
  )}</pre>`;
}
