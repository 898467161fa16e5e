// Colours that people with any colour vision tell apart (Okabe and Ito, "Color Universal Design", 2008), and a
// letter or a hatch beside each: never colour alone. The order is that of Paint in sim/view/label_view.hpp.
const PAINTS = [
  {name: 'forward', light: '#0072b2', dark: '#2b8fd0', text: '#ffffff'},
  {name: 'backward', light: '#e69f00', dark: '#e0a020', text: '#1b1400'},
  {name: 'weight gradient', light: '#f0e442', dark: '#e6da4a', text: '#1b1a00'},
  {name: 'recompute', light: '#56b4e9', dark: '#79c3ee', text: '#04202f'},
  {name: 'pipeline message', light: '#009e73', dark: '#1fb78c', text: '#ffffff'},
  {name: 'data-parallel traffic', light: '#cc79a7', dark: '#d68fb5', text: '#2a0a1c'},
  {name: 'other collectives', light: '#7a5ea8', dark: '#a48bd0', text: '#ffffff'},
  {name: 'optimizer', light: '#5b6570', dark: '#8d98a4', text: '#ffffff'},
  {name: 'other', light: '#98a1ab', dark: '#6d7883', text: '#000000'},
  {name: 'bubble', light: '#eceff2', dark: '#1c242d', text: '#59636e', hatch: {light: '#c3cad2', dark: '#3a4653'}},
  {name: 'exposed communication', light: '#f7d3c4', dark: '#4a1f12', text: '#8c2f0c', hatch: {light: '#d55e00', dark: '#ff7f3a'}},
];
const BUBBLE = 9;
const EXPOSED = 10;

// Parts of a breakdown, by their keys in a result.
const CATEGORY_PAINT = {
  forward: 0, backward: 1, recompute: 3, tensor_comm: 6, context_comm: 6, expert_comm: 6, pipeline_comm: 4, data_comm: 5,
  optimizer: 7, bubble: 9, other: 8,
};

const prefersDark = window.matchMedia('(prefers-color-scheme: dark)');
let printing = false;

function isDark() {
  return prefersDark.matches && !printing;
}

function colourOf(paint) {
  return isDark() ? PAINTS[paint].dark : PAINTS[paint].light;
}

function hatchOf(paint) {
  const hatch = PAINTS[paint].hatch;
  return hatch ? (isDark() ? hatch.dark : hatch.light) : null;
}

// As CSS: a colour, or stripes.
function fillOf(paint) {
  const hatch = hatchOf(paint);
  return hatch ? `repeating-linear-gradient(135deg, ${hatch} 0 2px, ${colourOf(paint)} 2px 6px)` : colourOf(paint);
}

function textOn(paint) {
  return PAINTS[paint].hatch && isDark() ? '#e4e9ee' : PAINTS[paint].text;
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// What must be drawn again when the colours change, or before paper.
const redrawn = [];
function redrawAll() {
  for (const draw of redrawn) draw();
}
prefersDark.addEventListener('change', redrawAll);
window.addEventListener('beforeprint', () => { printing = true; redrawAll(); });
window.addEventListener('afterprint', () => { printing = false; redrawAll(); });

function legend(paints) {
  const list = element('ul', {class: 'legend'});
  const fill = () => list.replaceChildren(...paints.map(paint => element('li', {},
    element('span', {class: 'swatch', style: {background: fillOf(paint)}}), PAINTS[paint].name)));
  fill();
  redrawn.push(fill);
  return list;
}
