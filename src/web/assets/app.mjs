// @ts-check
// The page: who waits first, then all slots, and the one that is chosen.

import { html, render, useEffect, useReducer, useRef, useState } from "./vendor/htm-preact.mjs";
import { Silent, events, forgetToken, hasToken, request, signIn } from "./api.mjs";
import { Card, asks, summary } from "./card.mjs";
import { Receipts, useReceipts } from "./receipts.mjs";
import { Slot } from "./slot.mjs";
import { age, oneLine, visible } from "./text.mjs";
import { VIEWS, View } from "./views.mjs";

const RETRY_MS = 1000;
/** The version of the program that this page is a part of. */
const PAGE_VERSION = document.querySelector('meta[name="missiond-version"]')?.getAttribute("content") ?? "";
const MARKS = { waits: "!", works: "●", idle: "○", down: "x" };

/** @param {any} slot */
function group(slot) {
  if (asks(slot) || slot.state === "confirming") return "waits";
  if (slot.state === "idle") return "idle";
  return slot.state === "error" || slot.state === "exited" ? "down" : "works";
}

const ORDER = ["waits", "works", "idle", "down"];
/** Those that wait come first, the longest wait before the others. */
const inOrder = (/** @type {Map<string, any>} */ slots) =>
  [...slots.values()].sort((a, b) => {
    const by = ORDER.indexOf(group(a)) - ORDER.indexOf(group(b));
    if (by !== 0) return by;
    return group(a) === "waits" ? Date.parse(a.since) - Date.parse(b.since) : a.slot.localeCompare(b.slot);
  });

/**
 * What is known: the statuses, and how often each slot has changed.
 * @param {(event: any) => void} happened
 */
function useSlots(happened) {
  const slots = useRef(new Map());
  const changes = useRef(new Map());
  const [link, setLink] = useState("connecting");
  const [epoch, begin] = useReducer((count) => count + 1, 0);
  const [versions, setVersions] = useState({ server: PAGE_VERSION, daemon: PAGE_VERSION });
  const [count, draw] = useReducer((count) => count + 1, 0);
  useEffect(() => {
    const ending = new AbortController();
    const stale = new Set();
    let asking = false;
    let begun = false;
    let position = /** @type {number | null} */ (null);

    /** What was missed is told behind the position; how all slots stand is asked for. */
    const renew = async () => {
      const all = await request("status", {}).catch(() => null);
      if (all === null) return;
      slots.current.clear();
      for (const slot of all) slots.current.set(slot.slot, slot);
      draw(undefined);
    };
    const compare = async (/** @type {string} */ server) => {
      const daemon = await request("ping", {}).catch(() => null);
      setVersions({ server, daemon: daemon?.version ?? server });
    };
    const refresh = async () => {
      if (asking) return;
      asking = true;
      while (stale.size > 0) {
        const names = [...stale];
        stale.clear();
        for (const name of names) {
          const found = await request("status", { slots: [name] }).catch(() => null);
          if (found !== null) slots.current.set(name, found[0]);
          changes.current.set(name, (changes.current.get(name) ?? 0) + 1);
        }
        draw(undefined);
      }
      asking = false;
    };
    const heard = (/** @type {string} */ kind, /** @type {any} */ data) => {
      if (kind === "live") {
        if (position !== null) renew();
        position = data.position;
        setLink("live");
        begin(undefined);
        return;
      }
      if (kind !== "event") return;
      if (position !== null) position = Math.max(position, data.seq ?? 0);
      happened(data);
      if (data.event === "snapshot") {
        // What was known before is shown until the daemon answers; it may have other slots by then.
        if (!begun) slots.current.clear();
        begun = true;
        slots.current.set(data.slot, data.status);
        draw(undefined);
      } else if (data.event === "closed") {
        slots.current.delete(data.slot);
        draw(undefined);
      } else if (data.slot) {
        stale.add(data.slot);
        refresh();
      }
    };
    const listen = async () => {
      while (!ending.signal.aborted) {
        try {
          begun = false;
          await events(heard, ending.signal, { after: position, opened: compare });
          setLink("the daemon does not answer");
        } catch (error) {
          if (error.status === 401) {
            forgetToken();
            setLink("signed out");
            return;
          }
          setLink(error.status === undefined && !(error instanceof Silent) ? "missiond web does not answer" : error.message);
        }
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    };
    listen();
    return () => ending.abort();
  }, []);
  return { slots: slots.current, changes: changes.current, count, link, epoch, versions };
}

function useClock() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

function App() {
  const receipts = useReceipts();
  const { slots, changes, count, link, epoch, versions } = useSlots(receipts.heard);
  const now = useClock();
  const [chosen, setChosen] = useState(/** @type {string | null} */ (null));
  const [said, setSaid] = useState("");
  const [view, setView] = useState("slots");
  if (link === "signed out") return html`<${SignedOut} why="The server does not know this page any more." />`;
  const all = inOrder(slots).filter((slot) => !slot.session);
  const waiting = all.filter((slot) => group(slot) === "waits");
  const current = slots.get(chosen ?? "") ?? (matchMedia("(min-width: 800px)").matches ? waiting[0] ?? all[0] : undefined);
  document.title = waiting.length > 0 ? `(${waiting.length}) missiond` : "missiond";
  const words = { waits: "wait", works: "work", idle: "idle", down: "down" };
  const counts = ORDER.map((name) => `${all.filter((slot) => group(slot) === name).length} ${words[name]}`);
  return html`
    <header>
      <h1>missiond</h1>
      <span class=${link === "live" ? "link live" : "link lost"} role="status">${link === "live" ? "● live" : `○ ${visible(link)}: trying again`}</span>
      <span class="counts">${counts.join(" · ")}</span>
      <span class="grow"></span>
      <div class="views">${VIEWS.map((name) => html`<button aria-pressed=${view === name} onClick=${() => setView(name)}>${name}</button>`)}</div>
    </header>
    <${Versions} ...${versions} />
    ${view !== "slots" ? html`<main class="one"><${View} view=${view} changed=${count} now=${now} told=${setSaid} /></main>` : html`<main class=${current ? "with-slot" : ""}>
      <nav aria-label="slots">
        <ul>${all.map((slot) => html`<${Row} key=${slot.slot} slot=${slot} now=${now} chosen=${current?.slot === slot.slot} choose=${() => setChosen(slot.slot)} />`)}</ul>
        ${all.length === 0 && html`<p class="why">No slots yet.</p>`}
      </nav>
      ${current && html`<article>
        <button class="back" onClick=${() => setChosen(null)}>‹ all slots</button>
        ${asks(current) && html`<${Card} key=${current.slot} slot=${current} now=${now} receipts=${receipts} answered=${setSaid} />`}
        <${Slot} key=${`slot ${current.slot}`} slot=${current} changed=${changes.get(current.slot) ?? 0} epoch=${epoch} now=${now} told=${setSaid} />
      </article>`}
    </main>`}
    <div class="told">
      <${Receipts} all=${receipts.all} />
      <footer role="status" aria-live="polite">${visible(said)}</footer>
    </div>`;
}

/** @param {{slot: any, now: number, chosen: boolean, choose: () => void}} props */
function Row({ slot, now, chosen, choose }) {
  const kind = group(slot);
  const { tool, about } = asks(slot) ? summary(slot) : { tool: slot.state, about: oneLine(slot.doing ?? slot.last_error ?? "") };
  return html`<li><button class=${`row ${kind}`} aria-current=${chosen} onClick=${choose}>
    <span class="mark" aria-hidden="true">${MARKS[kind]}</span>
    <span class="name">${oneLine(slot.slot)}</span><span class="role">${oneLine(slot.role)}</span>
    <span class="age">${age(slot.since, now)}</span>
    <span class="about"><b>${tool}</b> ${about}</span>
  </button></li>`;
}

/** The page, its server and the daemon may be of different versions, after an update. @param {{server: string, daemon: string}} props */
function Versions({ server, daemon }) {
  const versions = `This page is of missiond ${oneLine(PAGE_VERSION)}`;
  if (server !== PAGE_VERSION)
    return html`<p class="versions" role="alert">${versions}, and its server of ${oneLine(server)}: load the page again. <button onClick=${() => location.reload()}>Load again</button></p>`;
  if (daemon !== PAGE_VERSION)
    return html`<p class="versions" role="alert">${versions}, and the daemon of ${oneLine(daemon)}: end <code>missiond web</code> and start it again. Until then, something may not work here.</p>`;
  return null;
}

/** @param {{why: string}} props */
function SignedOut({ why }) {
  return html`<main class="signed-out"><h1>missiond</h1>
    <p>${visible(why)}</p>
    <p>In a terminal outside of the slots, run <code>missiond web</code> and open the address that it prints. Its code is good once, for a minute.</p></main>`;
}

const refused = await signIn().then(() => null, (error) => error.message);
const why = refused === null ? "This page needs a code." : `The code was not taken: ${refused}.`;
render(hasToken() ? html`<${App} />` : html`<${SignedOut} why=${why} />`, /** @type {Element} */ (document.getElementById("app")));
