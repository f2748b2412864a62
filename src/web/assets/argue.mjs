// @ts-check
// What speaks for and against a request: the verdict on each part, earlier answers, and what `always` would change.

import { html, useEffect, useState } from "./vendor/htm-preact.mjs";
import { request } from "./api.mjs";
import { age, oneLine, visible } from "./text.mjs";

/** @param {{file: string, line: number}} rule */
const place = (rule) => `${rule.file.split("/").pop()}:${rule.line}`;

/** Asked once for each request, and again when the rule for `always` is known. @param {any} slot */
function useExplained(slot) {
  const [explained, setExplained] = useState(/** @type {any} */ (null));
  const id = slot.dialog?.id ?? "";
  const rule = slot.always?.rule ?? "";
  useEffect(() => {
    let isCurrent = true;
    setExplained(null);
    // Without an explanation the card has the request and the reason all the same.
    request("explain", { slot: slot.slot }).then((told) => isCurrent && (told.dialog ?? "") === id && setExplained(told), () => {});
    return () => {
      isCurrent = false;
    };
  }, [slot.slot, id, rule]);
  return explained;
}

/** @param {{slot: any, now: number}} props */
export function Arguments({ slot, now }) {
  const told = useExplained(slot);
  const why = slot.waits_because && html`<div><dt>Why it asks</dt><dd>${visible(slot.waits_because)}</dd></div>`;
  if (told === null) return html`<dl class="argue">${why}${slot.always?.rule && html`<${Always} rule=${slot.always.rule} told=${null} days=${0} />`}</dl>`;
  // A single part says no more than the reason, unless a rule speaks of it.
  const parts = told.parts.length > 1 || told.parts[0]?.rule ? told.parts : [];
  return html`<dl class="argue">${why}
    ${parts.length > 0 && html`<div><dt>Its parts</dt><dd><table><tbody>${parts.map((/** @type {any} */ part) => html`<tr>
      <td class=${`verdict ${part.verdict}`}>${part.verdict}</td><td><code>${oneLine(part.part)}</code></td>
      <td>${part.rule ? html`<code>${oneLine(part.rule.text)}</code> ${oneLine(place(part.rule))}` : oneLine(part.why)}</td></tr>`)}</tbody></table></dd></div>`}
    ${told.answered > 0 && html`<div><dt>Before, ${told.answered} in ${told.days} days</dt><dd><ul>${told.earlier.map((/** @type {any} */ one) => html`<li>
      <b>${one.verdict === "deny" ? "no" : "yes"}</b> ${age(one.time, now)} ago in ${oneLine(one.slot)} by ${oneLine(one.via ?? "a person")}: ${oneLine(one.why)}</li>`)}</ul></dd></div>`}
    ${slot.always?.rule && html`<${Always} rule=${slot.always.rule} told=${told.always} days=${told.days} />`}
    ${told.incomplete && html`<div><dt>Note</dt><dd>${visible(told.incomplete)}</dd></div>`}
  </dl>`;
}

/** @param {{rule: string, told: any, days: number}} props */
function Always({ rule, told, days }) {
  const file = told ? told.file.split("/").pop() : "the policy";
  const count = (/** @type {number} */ many, /** @type {string} */ one, /** @type {string} */ other) => `${many} ${many === 1 ? one : other}`;
  const effect = told && told.asks !== undefined ? `${count(told.asks, "ask", "asks")} and ${count(told.denies, "deny", "denies")} of the last ${days} days become allow` : "";
  return html`<div><dt>Always would</dt><dd>add to ${oneLine(file)}: allow <code>${visible(rule)}</code>${effect && html`<br />${effect}`}</dd></div>`;
}
