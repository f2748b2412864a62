// A person at a desk sees what is asked, and says no with a reason.
export default async ({ page, picture, axe, url }) => {
  await page.goto(url);
  await page.getByText("touch denied").first().waitFor();
  if (page.url().includes("#")) throw new Error("the code is still in the address");
  const serious = await axe();
  await picture("asks");
  await page.getByLabel(/Why not/).fill("not this file");
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByRole("button", { name: "Deny" }).waitFor({ state: "detached" });
  await page.getByText("coder: denied").waitFor();
  const kept = await page.evaluate(() => [document.cookie, localStorage.length, sessionStorage.length]);
  return { serious, kept };
};
