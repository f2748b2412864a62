// @ts-check
// The views beside the slots: sessions, tasks, the timeline and the audit.

import { html, useEffect, useState } from "./vendor/htm-preact.mjs";
import { request, whyNot } from "./api.mjs";
import { useAnswer } from "./answer.mjs";
import { Picture } from "./slot.mjs";
import { age, oneLine, visible } from "./text.mjs";
import { Timeline } from "./timeline.mjs";

export const VIEWS = ["slots", "sessions", "tasks", "timeline", "audit"];

/** @param {{view: string, changed: number, now: number, told: (text: string) => void}} props */
export function View({ view, changed, now, told }) {
  if (view === "sessions") return html`<${Sessions} changed=${changed} now=${now} told=${told} />`;
  if (view === "tasks") return html`<${Tasks} changed=${changed} now=${now} told=${told} />`;
  if (view === "timeline") return html`<${Timeline} />`;
  return html`<${Audit} changed=${changed} />`;
}

/** What stands in place of a list that is not there. @param {any} answer @param {number} count @param {string} none */
function instead(answer, count, none) {
  if (answer === null) return html`<p class="why">…</p>`;
  if (answer.error) return html`<p class="failed">${visible(answer.error.message)}</p>`;
  return count === 0 ? html`<p class="why">${none}</p>` : null;
}

/** Does something with one of a list. @param {"cancel" | "close"} name @param {object} params @param {(text: string) => void} told */
async function act(name, params, told) {
  try {
    await request(name, params);
    told(`${name}: done`);
  } catch (error) {
    told(`${name}: ${error.message}`);
  }
}

/** @param {{changed: number, now: number, told: (text: string) => void}} props */
function Sessions({ changed, now, told }) {
  const [chosen, setChosen] = useState("");
  const sessions = useAnswer(() => request("sessions", {}), [changed]);
  return html`<section class="view" aria-label="sessions"><h2>Sessions</h2>
    ${whyNot("close") && html`<p class="why">To close one ${whyNot("close")}.</p>`}
    ${instead(sessions, sessions?.length ?? 0, "No sessions: missiond session spawn makes one.") ?? html`<ul class="list">${sessions.map((/** @type {any} */ one) => html`<li key=${one.id}>
      <b>${oneLine(one.id)}</b> ${one.is_alive ? (one.at_prompt ? "at its prompt" : "running") : `ended${one.exit_code === null ? "" : `, exit code ${one.exit_code}`}`}
      <span class="age">${" "}${age(one.created_at, now)}, ${oneLine(one.owner)}</span>
      <pre>${visible(one.command.join(" "))}</pre>
      <button onClick=${() => setChosen(chosen === one.id ? "" : one.id)}>${chosen === one.id ? "hide" : "screen"}</button> <button disabled=${whyNot("close") !== ""} title=${whyNot("close")} onClick=${() => confirm(`Close the session ${one.id}?`) && act("close", { slot: one.id }, told)}>close…</button>
      ${chosen === one.id && html`<${Picture} slot=${one.id} />`}
    </li>`)}</ul>`}
  </section>`;
}

/** @param {{changed: number, now: number, told: (text: string) => void}} props */
function Tasks({ changed, now, told }) {
  const tasks = useAnswer(() => request("tasks", {}), [changed]);
  const isOpen = (/** @type {any} */ task) => ["queued", "running", "needs_person"].includes(task.state);
  const sorted = Array.isArray(tasks) ? [...tasks].sort((a, b) => Number(isOpen(b)) - Number(isOpen(a)) || b.seq - a.seq) : [];
  return html`<section class="view" aria-label="tasks"><h2>Tasks</h2>
    ${whyNot("cancel") && html`<p class="why">To cancel one ${whyNot("cancel")}.</p>`}
    ${instead(tasks, sorted.length, "No tasks: missiond task submit makes one.") ?? html`<ul class="list">${sorted.map((/** @type {any} */ one) => html`<li key=${one.id}>
      <b>${oneLine(one.id)}</b> <span class=${`state-${one.state}`}>${oneLine(one.state.replace("_", " "))}</span>
      <span class="age">${" "}for ${oneLine(one.slot ?? one.to)}, ${age(one.submitted_at, now)}</span>
      <pre>${visible(one.text)}</pre>
      ${one.error && html`<p class="failed">${visible(one.error)}</p>`}
      ${one.answer && html`<pre class="answer">${visible(one.answer)}</pre>`}
      ${isOpen(one) && html`<button disabled=${whyNot("cancel") !== ""} title=${whyNot("cancel")} onClick=${() => confirm(`Cancel the task ${one.id}?`) && act("cancel", { id: one.id }, told)}>cancel…</button>`}
    </li>`)}</ul>`}
  </section>`;
}

/** @param {{changed: number}} props */
function Audit({ changed }) {
  const [by, setBy] = useState("");
  const [limit, setLimit] = useState(100);
  useEffect(() => setLimit(100), [by]);
  const audit = useAnswer(() => request("audit", { limit, ...(by && { by }) }), [changed, by, limit]);
  const entries = audit?.entries ?? [];
  return html`<section class="view" aria-label="audit"><h2>Audit</h2>
    <label>Decided by <select value=${by} onChange=${(/** @type {any} */ event) => setBy(event.target.value)}>
      <option value="">anybody</option><option>person</option><option>policy</option><option>missiond</option></select></label>
    ${instead(audit, entries.length, "Nothing was decided yet.") ?? html`<ul class="list">${entries.map((/** @type {any} */ one) => html`<li key=${one.seq}>
      <span class="age">${new Date(one.time).toLocaleString()}</span> <b>${oneLine(one.slot)}</b> <span class=${`verdict ${one.verdict ?? ""}`}>${oneLine(one.what === "verdict" ? one.verdict : one.what)}</span> ${oneLine([one.key, one.tool, one.target].filter(Boolean).join(" "))}
      <div>${visible(one.why)}</div>
      <div class="age">by ${oneLine(one.via ?? one.by)}${one.rule && html`, rule <code>${oneLine(one.rule.text)}</code> ${oneLine(`${one.rule.file.split("/").pop()}:${one.rule.line}`)}`}</div>
    </li>`)}</ul>`}
    ${audit?.more && limit < 1000 && html`<button onClick=${() => setLimit(Math.min(1000, limit * 3))}>older…</button>`}
  </section>`;
}
