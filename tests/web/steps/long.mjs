// A request of thousands of lines is allowed by nobody who has not come to its end, and the page stays quick.
export default async ({ page, picture, url }) => {
  await page.goto(url);
  await page.getByText("echo line 1", { exact: false }).first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".answers .no").disabled);
  const yes = page.getByRole("button", { name: "Allow once" });
  const before = await yes.isEnabled();
  const from = performance.now();
  await page.getByRole("button", { name: /reader/ }).first().click();
  await page.getByRole("region", { name: "reader" }).waitFor();
  await page.getByRole("button", { name: /coder/ }).first().click();
  await page.locator(".request").waitFor();
  const took_ms = performance.now() - from;
  const lines = await page.locator(".request pre").first().evaluate((pre) => pre.textContent.split("\n").length);
  await page.getByText("end of the request").scrollIntoViewIfNeeded();
  await page.waitForFunction(() => !document.querySelector(".answers .yes").disabled);
  await picture("long");
  return { before, lines, took_ms };
};
