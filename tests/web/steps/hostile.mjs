// Text of a slot that looks like markup, and a server of a slot's own that is opened in the same browser.
import http from "node:http";

/** What a page on another port can try. Each attempt says what it got. */
const attack = async (target) => {
  const attempt = (options) =>
    fetch(`${target}/api/status`, { method: "POST", body: "{}", ...options }).then((r) => r.type, () => "blocked");
  const got = {
    json: await attempt({ headers: { "Content-Type": "application/json" } }),
    form: await attempt({ mode: "no-cors" }),
  };
  const settled = (make) =>
    new Promise((resolve) => {
      const one = make();
      one.onload = one.onopen = one.onmessage = () => resolve("opened");
      one.onerror = () => resolve("blocked");
    });
  const image = (src) => {
    const made = new Image();
    made.src = src;
    return made;
  };
  got.image = await settled(() => image(`${target}/api/openapi.json`));
  got.icon = await settled(() => image(`${target}/assets/icon-192.png`));
  got.events = await settled(() => new EventSource(`${target}/api/events`));
  const ws = target.replace("http", "ws");
  got.socket = await settled(() => new WebSocket(`${ws}/api/events`, ["missiond.v1", "ticket.00"]));
  got.live = await settled(() => new WebSocket(`${ws}/api/live?slot=coder`, ["missiond.v1", "ticket.00"]));
  const form = document.createElement("form");
  form.method = "post";
  form.action = `${target}/api/down`;
  form.enctype = "text/plain";
  const frame = document.createElement("iframe");
  frame.name = "posted";
  form.target = "posted";
  const loaded = (one) => new Promise((resolve) => { one.onload = resolve; });
  document.body.append(frame, form);
  const posted = loaded(frame);
  form.submit();
  await posted;
  const framed = document.createElement("iframe");
  framed.src = target;
  const done = loaded(framed);
  framed.name = "framed";
  document.body.append(framed);
  await done;
  return got;
};

/** What the page's own policy holds back, if text of a slot ever became markup. It complains, so it has a page of its own. */
const inside = async (foreign) => {
  const tried = async (name, make) => {
    try {
      return [name, await make()];
    } catch {
      return [name, "blocked"];
    }
  };
  const added = (tag, set) =>
    new Promise((resolve) => {
      const one = document.createElement(tag);
      one.onload = () => resolve("loaded");
      one.onerror = () => resolve("blocked");
      set(one);
      document.head.append(one);
    });
  const later = (act) =>
    new Promise((resolve, reject) => {
      setTimeout(() => {
        try {
          resolve(act());
        } catch (error) {
          reject(error);
        }
      }, 0);
    });
  globalThis.ran = "blocked";
  const all = [
    await tried("inline", () => {
      const script = document.createElement("script");
      script.text = "globalThis.ran = 'ran'";
      document.head.append(script);
      return globalThis.ran;
    }),
    // A driver of the browser may evaluate; what runs by a timer is the page's own.
    await tried("eval", () => later(() => (0, eval)("'ran'"))),
    await tried("function", () => later(() => new Function("return 'ran'")())),
    await tried("markup", () => {
      document.createElement("div").innerHTML = "<b>x</b>";
      return "ran";
    }),
    await tried("script", () => added("script", (one) => { one.src = foreign; })),
    await tried("image", () => added("img", (one) => { one.src = foreign; })),
    await tried("fetch", () => fetch(foreign, { mode: "no-cors" }).then(() => "loaded")),
    await tried("base", () => {
      const base = document.createElement("base");
      base.href = foreign;
      document.head.append(base);
      return new URL("x", document.baseURI).origin === location.origin ? "blocked" : "moved";
    }),
  ];
  return Object.fromEntries(all);
};

export default async ({ page, context, picture, url, base }) => {
  await page.goto(url);
  await page.getByText("onerror=document.title=1").first().waitFor();
  await picture("hostile");
  const images = await page.locator("img, b:text-is('bold')").count();
  const shown = await page.locator(".request pre").first().textContent();

  const seen = [];
  const other = http.createServer((request, response) => {
    seen.push(...Object.keys(request.headers).filter((name) => ["cookie", "authorization"].includes(name)));
    response.setHeader("Content-Type", "text/html").end("<p>mine</p>");
  });
  await new Promise((resolve) => other.listen(0, "127.0.0.1", resolve));
  const foreign = `http://127.0.0.1:${other.address().port}/`;
  const stranger = await context.newPage();
  await stranger.goto(foreign);
  const got = await stranger.evaluate(attack, base);
  got.frame = await stranger.frame("framed").evaluate(() => document.querySelector("#app") !== null).catch(() => false);

  // A window that a stranger opens has no way back, and the stranger none into it.
  const [opened] = await Promise.all([context.waitForEvent("page"), stranger.evaluate((target) => { globalThis.w = window.open(target); }, base)]);
  await opened.waitForLoadState();
  got.opener = await opened.evaluate(() => window.opener !== null);
  got.window = await stranger.evaluate(() => {
    try {
      return globalThis.w !== null && !globalThis.w.closed && globalThis.w.document !== null;
    } catch {
      return false;
    }
  });
  const policy = await context.newPage();
  await policy.goto(base);
  const held = await policy.evaluate(inside, foreign);
  await new Promise((resolve) => other.close(resolve) && other.closeAllConnections());
  return { images, shown, got, held, seen };
};
