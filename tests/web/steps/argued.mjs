// A person reads what speaks for and against a request that was denied before.
export default async ({ page, picture, url }) => {
  await page.goto(url);
  const said = (name) => page.locator(".argue > div", { hasText: name }).locator("dd");
  await said("Before").waitFor();
  await page.getByText("of the last 7 days").waitFor();
  await picture("argued");
  return { before: await said("Before").innerText(), always: await said("Always").innerText() };
};
