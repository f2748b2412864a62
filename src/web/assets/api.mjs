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

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
export const forgetToken = () => sessionStorage.removeItem(KEY);

/** Exchanges the code in the address for a token. The code leaves the address first: it is good once. */
export async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("k");
  if (code === null) return;
  history.replaceState(null, "", location.pathname);
  forgetToken();
  const session = await request("session", { code });
  sessionStorage.setItem(KEY, session.token);
}

const authorization = () => {
  const token = sessionStorage.getItem(KEY);
  return token === null ? {} : { Authorization: `Bearer ${token}` };
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

/**
 * Streams how the slots stand, and then what happens, until the connection ends.
 * @param {(kind: string, data: any) => void} heard
 * @param {AbortSignal} signal
 */
export async function events(heard, signal) {
  const response = await fetch("/api/events", { headers: authorization(), signal });
  if (!response.ok || response.body === null) throw await refused(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
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
