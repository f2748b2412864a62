// @ts-check
// The way to the daemon: a token for a code, requests, and the stream of events.

const KEY = "missiond.token";

/** An answer of the server that is not the wanted one. */
export class Refused extends Error {
  /** @param {number} status @param {{message?: string, next?: string}} error */
  constructor(status, error) {
    super(error.message ?? `status ${status}`);
    this.status = status;
    this.next = error.next;
  }
}

/** Nothing has come for too long. */
export class Silent extends Error {}

/** What a token may do; each scope includes those before it. */
const SCOPES = ["view", "answer", "steer", "keys"];

/** The scope that each request of a button needs, as the server has it. */
export const NEEDS = {
  confirm: "answer",
  always: "keys",
  send: "steer",
  interrupt: "steer",
  restart: "steer",
  cancel: "steer",
  close: "keys",
  keyboard: "keys",
};

/** A tab has its own session; a paired device has one that outlives the tab. @returns {{token: string, scope: string} | null} */
const session = () => JSON.parse(sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? "null");

export const hasToken = () => session() !== null;
/** The one that was used last. */
export const forgetToken = () => (sessionStorage.getItem(KEY) === null ? localStorage : sessionStorage).removeItem(KEY);

/**
 * Why this page may not do something; empty if it may. The server checks it again.
 * @param {keyof typeof NEEDS} name
 */
export function whyNot(name) {
  const scope = session()?.scope ?? "view";
  return SCOPES.indexOf(scope) >= SCOPES.indexOf(NEEDS[name]) ? "" : `needs the scope ${NEEDS[name]}, and this page has ${scope}`;
}

/** Exchanges the code in the address for a token. The code leaves the address first: it is good once. */
export async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("k");
  if (code === null) return;
  history.replaceState(null, "", location.pathname);
  sessionStorage.removeItem(KEY);
  const { token, scope, device } = await request("session", { code });
  (device === undefined ? sessionStorage : localStorage).setItem(KEY, JSON.stringify({ token, scope }));
}

const authorization = () => {
  const token = session()?.token;
  return token === undefined ? {} : { Authorization: `Bearer ${token}` };
};

/** @param {Response} response */
async function refused(response) {
  const body = await response.json().catch(() => ({}));
  return new Refused(response.status, body.error ?? {});
}

/** @param {string} name @param {object} params @returns {Promise<any>} */
export async function request(name, params) {
  const response = await fetch(`/api/${name}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...authorization() },
    body: JSON.stringify(params),
  });
  if (!response.ok) throw await refused(response);
  return response.json();
}

/** A request of a page that is being closed: nobody hears the answer. @param {string} name @param {object} params */
export function requestAtTheEnd(name, params) {
  const headers = { "Content-Type": "application/json", ...authorization() };
  fetch(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(params), keepalive: true }).catch(() => {});
}

/** The server says something every 15 s; a connection that is silent for this long is dead, as after a sleep. */
const SILENT_MS = 25_000;

/**
 * Streams how the slots stand, and then what happens, until the connection ends or is silent for too long.
 * @param {(kind: string, data: any) => void} heard
 * @param {AbortSignal} signal
 * @param {{after: number | null, opened: (version: string) => void}} options go on behind this position
 */
export async function events(heard, signal, { after, opened }) {
  const ending = new AbortController();
  const end = () => ending.abort();
  let last = Date.now();
  let isSilent = false;
  const look = () => {
    if (Date.now() - last <= SILENT_MS) return;
    isSilent = true;
    end();
  };
  const timer = setInterval(look, 1000);
  signal.addEventListener("abort", end);
  // A device that wakes up looks at once.
  document.addEventListener("visibilitychange", look);
  try {
    const response = await fetch(after === null ? "/api/events" : `/api/events?after=${after}`, { headers: authorization(), signal: ending.signal });
    if (!response.ok || response.body === null) throw await refused(response);
    opened(response.headers.get("missiond-version") ?? "");
    await read(response.body, heard, () => (last = Date.now()));
  } catch (error) {
    throw isSilent ? new Silent("missiond web is silent") : error;
  } finally {
    clearInterval(timer);
    signal.removeEventListener("abort", end);
    document.removeEventListener("visibilitychange", look);
    end();
  }
}

/** @param {ReadableStream<Uint8Array>} body @param {(kind: string, data: any) => void} heard @param {() => void} alive */
async function read(body, heard, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const field = (/** @type {string} */ name) =>
        block.split("\n").filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2));
      const [kind] = field("event");
      if (kind !== undefined) heard(kind, JSON.parse(field("data").join("\n")));
    }
  }
}

/**
 * Follows the screen of a slot by WebSocket. Nothing is ever sent there: looking on presses no key.
 * @param {string} slot @param {(screen: any) => void} shown @param {() => void} ended
 * @returns {() => void} what ends it
 */
export function live(slot, shown, ended) {
  let socket = /** @type {WebSocket | null} */ (null);
  let isOver = false;
  const end = () => isOver || ended();
  request("ticket", { slot }).then(({ ticket }) => {
    if (isOver) return;
    const url = new URL(`/api/live?slot=${encodeURIComponent(slot)}`, location.href);
    url.protocol = url.protocol.replace("http", "ws");
    socket = new WebSocket(url, ["missiond.v1", `ticket.${ticket}`]);
    socket.onmessage = (event) => shown(JSON.parse(event.data));
    socket.onclose = end;
  }, end);
  return () => {
    isOver = true;
    socket?.close();
  };
}
