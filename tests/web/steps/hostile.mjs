// Text of a slot that looks like markup, and a server of a slot's own that is opened in the same browser.
import http from "node:http";

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
  const stranger = await context.newPage();
  await stranger.goto(`http://127.0.0.1:${other.address().port}/`);
  const got = await stranger.evaluate(async (target) => {
    const attempt = (options) =>
      fetch(`${target}/api/status`, { method: "POST", body: "{}", ...options }).then((r) => r.type, () => "blocked");
    const json = await attempt({ headers: { "Content-Type": "application/json" } });
    const form = await attempt({ mode: "no-cors" });
    const frame = document.createElement("iframe");
    frame.src = target;
    const loaded = new Promise((resolve) => { frame.onload = resolve; });
    document.body.append(frame);
    await loaded;
    return { json, form };
  }, base);
  const framed = stranger.frames()[1];
  got.frame = await framed.evaluate(() => document.querySelector("#app") !== null).catch(() => false);
  await new Promise((resolve) => other.close(resolve) && other.closeAllConnections());
  return { images, shown, got, seen };
};
