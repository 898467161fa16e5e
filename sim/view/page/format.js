// Numbers and elements for people.

// Four significant digits with a unit that fits.
function humanTime(ns) {
  if (ns === 0) return '0 s';
  const size = Math.abs(ns);
  const [scale, unit] = size >= 3.6e12 * 48 ? [8.64e13, 'd'] : size >= 3.6e12 * 2 ? [3.6e12, 'h'] : size >= 1e9 ? [1e9, 's'] :
    size >= 1e6 ? [1e6, 'ms'] : size >= 1e3 ? [1e3, 'µs'] : [1, 'ns'];
  return digits(ns / scale) + ' ' + unit;
}

function digits(value, significant = 4) {
  if (value === 0) return '0';
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e9) return value.toLocaleString('en-US');
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  if (size >= Math.min(1e4, 10 ** (significant - 1))) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(significant)));
}

function humanBytes(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let value = bytes;
  for (; Math.abs(value) >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return digits(value, 3) + ' ' + units[unit];
}

function percent(share, decimals = 1) {
  return (100 * share).toFixed(decimals) + ' %';
}

// element('p', {class: 'muted'}, 'text', child, …): texts are texts, whatever they hold.
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'style') Object.assign(made.style, value);
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes || {})) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Round numbers that cut [0, most] into about `count` parts.
function ticks(least, most, count) {
  const span = most - least;
  if (!(span > 0)) return [least];
  const rough = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(candidate => candidate >= rough);
  const first = Math.ceil(least / step);
  const out = [];
  for (let i = first; i * step <= most + step * 1e-9; ++i) out.push(i * step);
  return out;
}

// [mark, text] each, as a list under a chart: of any number and length.
function keyList(entries) {
  return element('ul', {class: 'legend'}, ...entries.map(([mark, text, faint]) =>
    element('li', faint ? {class: 'key', style: {opacity: '0.35'}} : {class: 'key'}, mark, text)));
}

function table(head, rows, textColumns = [0]) {
  const cell = (tag, text, column) => element(tag, textColumns.includes(column) ? {class: 'text'} : {}, text);
  return element('div', {class: 'scroll'}, element('table', {},
    element('thead', {}, element('tr', {}, ...head.map((text, column) => cell('th', text, column)))),
    element('tbody', {}, ...rows.map(row => element('tr', {}, ...row.map((text, column) => cell('td', text, column)))))));
}
