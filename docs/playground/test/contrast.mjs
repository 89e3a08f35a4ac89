// Whether text can be read, as WCAG 2 measures it at its level AA. It runs in the page, so it has to be one function.

export function contrasts() {
  const LARGE_PX = 18.66;
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) known.set(colour, painted(colour));
    return known.get(colour);
  };
  const painted = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((part, at) => part * a + below[at] * (1 - a)).concat(1);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) =>
      part / 255 <= 0.03928 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let each = element; each !== null; each = each.parentElement)
      layers.push(rgba(getComputedStyle(each).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
  };
  const found = [];
  for (const element of document.querySelectorAll("body *")) {
    const isText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "");
    if (
      !isText ||
      element.closest("svg, script, style, noscript, .hidden, [hidden]") ||
      element.getClientRects().length === 0
    )
      continue;
    const { color, fontSize } = getComputedStyle(element);
    const background = behind(element);
    const [light, dark] = [luminance(over(rgba(color), background)), luminance(background)].sort(
      (one, other) => other - one,
    );
    const ratio = (light + 0.05) / (dark + 0.05);
    const least = Number.parseFloat(fontSize) >= LARGE_PX ? 3 : 4.5;
    if (ratio < least)
      found.push(`${element.className || element.tagName} “${element.textContent.slice(0, 20)}” ${ratio.toFixed(2)}`);
  }
  return [...new Set(found)];
}
