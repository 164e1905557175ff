// Light or dark is read from the background that is really there, so it is right in any host and with any theme.

function luminance(colour: string): number | undefined {
  const found = colour.match(/[\d.]+/g)?.map(Number);
  if (!found || found.length < 3 || found[3] === 0) return undefined;
  const [red = 0, green = 0, blue = 0] = found;
  return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255;
}

/** Keep `data-theme` on the root at "light" or "dark" until the returned function is called. */
export function followTheme(root: HTMLElement): () => void {
  const look = (): void => {
    const found = luminance(getComputedStyle(root).backgroundColor);
    const dark = found === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : found < 0.4;
    root.dataset["theme"] = dark ? "dark" : "light";
  };
  // A theme's style sheet can arrive after the attribute that announces it: look again a little later.
  const later = (): void => {
    look();
    setTimeout(look, 150);
    setTimeout(look, 1000);
  };
  const watch = new MutationObserver(later);
  watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light", "class"] });
  const preference = matchMedia("(prefers-color-scheme: dark)");
  preference.addEventListener("change", later);
  // The view is drawn before it is attached, and has no computed background until then.
  requestAnimationFrame(later);
  return () => {
    watch.disconnect();
    preference.removeEventListener("change", later);
  };
}
