// @ts-check
// What has come of the answers that were given here, step by step, as the events tell.

import { html, useRef, useReducer } from "./vendor/htm-preact.mjs";
import { oneLine } from "./text.mjs";

/** Answers that are followed at once. */
const MOST = 4;

/**
 * The step that an event tells of, if it is one of this answer.
 * @param {any} receipt @param {any} event @returns {string | null}
 */
function step(receipt, event) {
  if (event.slot !== receipt.slot) return null;
  const isDecided = receipt.steps.length > 0;
  // Somebody else may decide before the answer from here arrives.
  const isOwn = event.via === undefined || event.via === "web" || event.via.startsWith("web ");
  if (event.event === "verdict" && event.by === "person" && isOwn && !isDecided) return "decided";
  if (event.event === "key" && isDecided && !receipt.gone) return `key ${oneLine(event.key)}`;
  if (event.event === "dialog_gone" && event.id === receipt.dialog) return "dialog gone";
  if (event.event === "ran" && event.call && event.call === receipt.call) return event.error ? `ran, failed: ${oneLine(event.error)}` : "ran";
  return null;
}

export function useReceipts() {
  const all = useRef(/** @type {any[]} */ ([]));
  const [, draw] = useReducer((count) => count + 1, 0);
  return {
    all: all.current,
    /** @param {string} slot @param {any} dialog @param {string} answer */
    given: (slot, dialog, answer) => {
      all.current.unshift({ slot, dialog: dialog.id, call: dialog.request, answer, steps: [], gone: false });
      all.current.splice(MOST);
      draw(undefined);
    },
    /** It was not taken: what happens to the dialog is not its effect. @param {string} dialog @param {string} why */
    refused: (dialog, why) => {
      const receipt = all.current.find((one) => one.dialog === dialog);
      if (receipt) receipt.refused = why;
      draw(undefined);
    },
    /** @param {any} event */
    heard: (event) => {
      for (const receipt of all.current) {
        const next = receipt.refused ? null : step(receipt, event);
        if (next === null) continue;
        receipt.steps.push(next);
        receipt.gone ||= event.event === "dialog_gone";
        draw(undefined);
      }
    },
  };
}

/** @param {{all: any[]}} props */
export function Receipts({ all }) {
  return html`<ul class="receipts" aria-label="your answers">${all.map((one) => html`<li class=${one.refused ? "failed" : ""}>
    <b>${oneLine(one.slot)}: ${oneLine(one.answer)}</b> ${one.refused ? `not taken: ${oneLine(one.refused)}` : ["sent", ...one.steps].map((name) => html`<span class="step">${name} ✓</span> `)}</li>`)}</ul>`;
}
