// The daemon, and then the server, are of another version than the page.
export default async ({ page, url, base }) => {
  await page.goto(url);
  await page.getByText("● live").waitFor();
  const same = await page.locator(".versions").count();
  await page.route("**/api/ping", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), version: "99.0.0" } });
  });
  await page.goto(base);
  await page.locator(".versions").waitFor();
  const daemon = await page.locator(".versions").innerText();
  await page.unroute("**/api/ping");
  await page.route(`${base}/`, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()) });
  });
  await page.route("**/api/events*", (route) =>
    route.fulfill({ status: 200, headers: { "missiond-version": "98.0.0" }, contentType: "text/event-stream", body: 'event: live\ndata: {"position": 1}\n\n' }),
  );
  await page.goto(base);
  await page.getByText("its server of").waitFor();
  return { same, daemon, server: await page.locator(".versions").innerText() };
};
