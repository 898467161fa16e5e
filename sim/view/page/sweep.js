// The page of a sweep.

// Figures that a point is judged by: what is better, and how it is written.
const FIGURES = {
  iteration_time_s: {better: Math.min, text: value => humanTime(value * 1e9), name: 'iteration time'},
  samples_per_s: {better: Math.max, text: value => digits(value) + ' samples/s', name: 'samples per second'},
  tokens_per_s: {better: Math.max, text: value => digits(value, 6) + ' tokens/s', name: 'tokens per second'},
  tokens_per_s_per_gpu: {better: Math.max, text: value => digits(value) + ' tokens/s', name: 'tokens per second and GPU'},
  model_tflops_per_gpu: {better: Math.max, text: value => digits(value) + ' TFLOP/s', name: 'model TFLOP/s per GPU'},
  mfu: {better: Math.max, text: value => percent(value), name: 'MFU'},
  'bubble.over_ideal': {better: Math.min, text: value => percent(value), name: 'bubble over ideal'},
  'memory.peak_bytes': {better: Math.min, text: humanBytes, name: 'peak memory'},
  gpus: {better: Math.min, text: value => digits(value, 7), name: 'GPUs'},
  'goodput.samples_per_s': {better: Math.max, text: value => digits(value) + ' samples/s', name: 'samples per second under failures'},
  'goodput.fraction_of_ideal': {better: Math.max, text: value => percent(value), name: 'of ideal under failures'},
};
const SERIES = [0, 1, 4, 5, 6, 3, 7, 2, 8];  // paints of lines
const DASHES = ['', '10 4', '3 3', '12 3 3 3'];

function isBetter(figure, value, than) {
  return than === undefined || (FIGURES[figure].better(value, than) === value && value !== than);
}

function axisName(path) {
  return path.split('.').pop().replaceAll('_', ' ');
}

class SweepData {
  constructor(data) {
    this.names = data.columns.map(column => column.name);
    this.varied = data.columns.filter(column => column.varied).map(column => column.name);
    this.rows = data.rows.map(values => Object.fromEntries(values.map((value, i) => [this.names[i], value])));
    this.good = this.rows.filter(row => row.feasible === 'true' || row.feasible === true);
    this.figures = Object.keys(FIGURES).filter(name => this.names.includes(name) &&
      this.good.some(row => typeof row[name] === 'number' && row[name] !== 0));
    this.values = Object.fromEntries(this.varied.map(path => [path, this.valuesOf(path)]));
  }

  // In order: numbers by size, texts as they come.
  valuesOf(path) {
    const values = [...new Set(this.rows.map(row => row[path]))];
    return values.every(value => typeof value === 'number') ? values.sort((a, b) => a - b) : values;
  }

  // The best row for each choice of the given paths, by their values.
  best(figure, paths) {
    const found = new Map();
    for (const row of this.good) {
      if (typeof row[figure] !== 'number') continue;
      const key = JSON.stringify(paths.map(path => row[path]));
      if (isBetter(figure, row[figure], found.get(key)?.[figure])) found.set(key, row);
    }
    return found;
  }
}

function describePoint(sweep, row) {
  return sweep.varied.map(path => `${axisName(path)} ${row[path]}`).join(', ') + '\n' +
    sweep.figures.map(figure => `${FIGURES[figure].name}: ${FIGURES[figure].text(row[figure])}`).join('\n');
}

const CHART = {width: 1000, height: 380, left: 140, right: 60, top: 14, bottom: 46};

function chartFrame(label) {
  return svg('svg', {viewBox: `0 0 ${CHART.width} ${CHART.height}`, role: 'img', 'aria-label': label});
}

// Axes with ticks; `xs`: [[position, text]].
function drawAxes(picture, xs, yTicks, y, text, xName, yName) {
  const right = CHART.width - CHART.right, bottom = CHART.height - CHART.bottom;
  for (const tick of yTicks)
    picture.append(svg('line', {class: 'axis', x1: CHART.left, x2: right, y1: y(tick), y2: y(tick)}),
      svg('text', {x: CHART.left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, text(tick)));
  for (const [at, name] of xs) picture.append(svg('text', {x: at, y: bottom + 18, 'text-anchor': 'middle'}, String(name)));
  picture.append(svg('text', {x: (CHART.left + right) / 2, y: CHART.height - 6, 'text-anchor': 'middle'}, xName),
    svg('text', {x: 12, y: CHART.top + 4}, yName));
}

// Round in the unit in which the figure is written: GiB are powers of two.
function figureTicks(figure, least, most) {
  const unit = FIGURES[figure].text === humanBytes ? 1024 ** Math.floor(Math.log2(Math.max(1, most)) / 10) : 1;
  return ticks(least / unit, most / unit, 6).map(tick => tick * unit);
}

function linesChart(sweep, figure, xPath, seriesPath) {
  const picture = chartFrame(`${FIGURES[figure].name} over ${axisName(xPath)}`);
  const points = sweep.best(figure, seriesPath ? [xPath, seriesPath] : [xPath]);
  const xValues = sweep.values[xPath];
  const right = CHART.width - CHART.right, bottom = CHART.height - CHART.bottom;
  const x = value => CHART.left + 20 + (right - CHART.left - 40) * (xValues.length < 2 ? 0.5 : xValues.indexOf(value) / (xValues.length - 1));
  const all = [...points.values()].map(row => row[figure]);
  const least = Math.min(0, ...all), most = Math.max(...all) * 1.04 || 1;
  const y = value => bottom - (value - least) / (most - least) * (bottom - CHART.top - 16);
  const every = Math.ceil(xValues.length / 16);
  drawAxes(picture, xValues.filter((_, i) => i % every === 0).map(value => [x(value), value]), figureTicks(figure, least, most), y, FIGURES[figure].text,
    axisName(xPath), FIGURES[figure].name);
  const series = seriesPath ? sweep.values[seriesPath] : [undefined];
  const keys = [];
  series.forEach((name, i) => {
    const rows = xValues.map(value => points.get(JSON.stringify(seriesPath ? [value, name] : [value]))).filter(row => row);
    if (rows.length === 0) return;
    const colour = colourOf(SERIES[i % SERIES.length]);
    picture.append(svg('polyline', {points: rows.map(row => `${x(row[xPath])},${y(row[figure])}`).join(' '), fill: 'none', stroke: colour,
      'stroke-width': '2', 'stroke-dasharray': DASHES[i % DASHES.length]}));
    for (const row of rows)
      picture.append(svg('circle', {cx: x(row[xPath]), cy: y(row[figure]), r: '4', fill: colour}, svg('title', {}, describePoint(sweep, row))));
    if (seriesPath)
      keys.push([svg('svg', {viewBox: '0 0 24 12', style: 'width: 24px; flex: none'}, svg('line', {x1: 0, x2: 24, y1: 6, y2: 6, stroke: colour, 'stroke-width': '3',
        'stroke-dasharray': DASHES[i % DASHES.length]})), String(name)]);
  });
  return element('div', {}, picture, keyList(keys));
}

// From the worst to the best: a scale that any colour vision orders by lightness.
function heatColour(share) {
  const from = isDark() ? [24, 38, 58] : [236, 243, 250], to = isDark() ? [240, 196, 90] : [0, 74, 128];
  return from.map((value, i) => Math.round(value + (to[i] - value) * share));
}

function heatMap(sweep, figure, xPath, yPath) {
  const xs = sweep.values[xPath], ys = sweep.values[yPath];
  const points = sweep.best(figure, [xPath, yPath]);
  const all = [...points.values()].map(row => row[figure]);
  const least = Math.min(...all), most = Math.max(...all);
  const cell = row => {
    if (!row) return element('td', {style: {background: variable('--panel'), textAlign: 'center'}, title: 'no point here can run'}, '–');
    const place = most > least ? (row[figure] - least) / (most - least) : 1;
    const share = FIGURES[figure].better === Math.max ? place : 1 - place;
    const colour = heatColour(share);
    const light = colour[0] * 0.3 + colour[1] * 0.6 + colour[2] * 0.1 > 130;
    return element('td', {title: describePoint(sweep, row), style: {background: `rgb(${colour.join(',')})`, color: light ? '#10151a' : '#ffffff',
      textAlign: 'center', padding: '6px 10px'}}, FIGURES[figure].text(row[figure]));
  };
  return element('div', {class: 'scroll'}, element('table', {class: 'heat'},
    element('thead', {}, element('tr', {}, element('th', {}, `${axisName(yPath)} ↓  ${axisName(xPath)} →`), ...xs.map(value => element('th', {}, String(value))))),
    element('tbody', {}, ...ys.map(yValue => element('tr', {}, element('td', {}, String(yValue)),
      ...xs.map(xValue => cell(points.get(JSON.stringify([xValue, yValue])))))))));
}

// Points that no other beats in both figures.
function paretoFront(rows, first, second) {
  const value = (row, figure) => FIGURES[figure].better === Math.max ? -row[figure] : row[figure];
  const sorted = [...rows].sort((a, b) => value(a, first) - value(b, first) || value(a, second) - value(b, second));
  const front = [];
  let best = Infinity;
  for (const row of sorted) {
    if (value(row, second) >= best) continue;
    best = value(row, second);
    front.push(row);
  }
  return front;
}

function paretoChart(sweep, xFigure, yFigure) {
  const rows = sweep.good.filter(row => typeof row[xFigure] === 'number' && typeof row[yFigure] === 'number');
  const picture = chartFrame(`${FIGURES[yFigure].name} against ${FIGURES[xFigure].name}`);
  const right = CHART.width - CHART.right, bottom = CHART.height - CHART.bottom;
  const range = figure => {
    const all = rows.map(row => row[figure]);
    const least = Math.min(...all), most = Math.max(...all), room = (most - least) * 0.06 || Math.abs(most) * 0.1 || 1;
    return [least - room, most + room];
  };
  const [xLeast, xMost] = range(xFigure), [yLeast, yMost] = range(yFigure);
  const x = value => CHART.left + (value - xLeast) / (xMost - xLeast) * (right - CHART.left);
  const y = value => bottom - (value - yLeast) / (yMost - yLeast) * (bottom - CHART.top - 16);
  drawAxes(picture, figureTicks(xFigure, xLeast, xMost).map(tick => [x(tick), FIGURES[xFigure].text(tick)]), figureTicks(yFigure, yLeast, yMost), y, FIGURES[yFigure].text,
    FIGURES[xFigure].name, FIGURES[yFigure].name);
  const front = paretoFront(rows, xFigure, yFigure);
  const members = new Set(front);
  for (const row of rows)
    if (!members.has(row)) picture.append(svg('circle', {cx: x(row[xFigure]), cy: y(row[yFigure]), r: '3', fill: colourOf(8), opacity: '0.6'},
      svg('title', {}, describePoint(sweep, row))));
  picture.append(svg('polyline', {points: front.map(row => `${x(row[xFigure])},${y(row[yFigure])}`).join(' '), fill: 'none', stroke: colourOf(1), 'stroke-width': '2'}));
  for (const row of front)
    picture.append(svg('rect', {x: x(row[xFigure]) - 5, y: y(row[yFigure]) - 5, width: '10', height: '10', fill: colourOf(1)}, svg('title', {}, describePoint(sweep, row))));
  return element('figure', {}, picture, element('figcaption', {}, `Squares: the ${front.length} of ${rows.length} points that no other beats in both.`));
}

function choice(label, names, chosen, change, spoken = axisName) {
  const select = element('select', {'aria-label': label, onchange: () => change(select.value)},
    ...names.map(name => element('option', name === chosen ? {value: name, selected: ''} : {value: name}, name === '' ? '–' : spoken(name))));
  return element('label', {}, label + ' ', select);
}

// A chart with choices above it, drawn anew at each.
function chosenChart(id, title, choices, draw) {
  const state = Object.fromEntries(choices.map(one => [one.key, one.first]));
  const place = element('div', {});
  const redraw = () => place.replaceChildren(draw(state));
  const controls = choices.filter(one => one.names.length > 1).map(one =>
    choice(one.label, one.names, one.first, value => { state[one.key] = value; redraw(); }, one.spoken));
  redraw();
  redrawn.push(redraw);
  return element('section', {id}, element('h2', {}, title), element('div', {class: 'controls'}, ...controls), place);
}

function bestTable(sweep, figure) {
  const sorted = [...sweep.good].filter(row => typeof row[figure] === 'number')
    .sort((a, b) => a[figure] === b[figure] ? 0 : isBetter(figure, a[figure], b[figure]) ? -1 : 1);
  return table([...sweep.varied.map(axisName), ...sweep.figures.map(name => FIGURES[name].name)], sorted.slice(0, 12).map(row =>
    [...sweep.varied.map(path => String(row[path])), ...sweep.figures.map(name => typeof row[name] === 'number' ? FIGURES[name].text(row[name]) : '–')]));
}

function refusedTable(sweep) {
  const reasons = new Map();
  for (const row of sweep.rows)
    if (!sweep.good.includes(row)) {
      const reason = (row.reason || 'unknown').split(':')[0];
      reasons.set(reason, [(reasons.get(reason) || [0])[0] + 1, row.reason || '']);
    }
  return table(['why points cannot run', 'points', 'for instance'], [...reasons].map(([reason, [count, example]]) => [reason, digits(count, 7), example]), [0, 2]);
}

function sweepPage(data) {
  const sweep = new SweepData(data);
  const page = document.getElementById('page');
  const figure = ['tokens_per_s', 'samples_per_s', 'iteration_time_s'].find(name => sweep.figures.includes(name)) || sweep.figures[0];
  page.append(element('h1', {}, data.title), element('div', {class: 'facts'},
    fact(digits(data.points, 9), 'points'), fact(digits(sweep.good.length, 9), 'can run'), fact(digits(sweep.rows.length - sweep.good.length, 9), 'cannot'),
    ...(figure && sweep.good.length > 0 ? [fact(FIGURES[figure].text(FIGURES[figure].better(...sweep.good.map(row => row[figure]))), `best ${FIGURES[figure].name}`)] : [])));
  if (data.points > sweep.rows.length) page.append(element('p', {class: 'warn'}, `Of ${data.points} points the first ${sweep.rows.length} are here.`));
  const spoken = name => FIGURES[name].name;
  const figures = {key: 'figure', label: 'figure', names: sweep.figures, first: figure, spoken};
  const axes = sweep.varied.filter(path => sweep.values[path].length > 1);
  if (figure && axes.length > 0) {
    const many = [...axes].sort((a, b) => sweep.values[b].length - sweep.values[a].length);
    const numeric = many.find(path => typeof sweep.values[path][0] === 'number') || many[0];
    const other = axes.find(path => path !== numeric);
    page.append(chosenChart('lines', 'Lines', [figures, {key: 'x', label: 'over', names: axes, first: numeric},
      {key: 'series', label: 'a line for each', names: ['', ...axes], first: other || ''}],
    state => linesChart(sweep, state.figure, state.x, state.series === state.x ? '' : state.series)));
    if (axes.length > 1)
      page.append(chosenChart('heat', 'Heat map', [figures, {key: 'x', label: 'across', names: axes, first: numeric}, {key: 'y', label: 'down', names: axes, first: other}],
        state => heatMap(sweep, state.figure, state.x, state.y)));
    page.append(element('p', {class: 'muted small'}, 'Where more is varied than a chart shows, it has the best point of each kind.'));
  }
  if (sweep.figures.length > 1) {
    const cost = ['memory.peak_bytes', 'gpus', 'bubble.over_ideal'].find(name => sweep.figures.includes(name)) || sweep.figures.find(name => name !== figure);
    page.append(chosenChart('pareto', 'Pareto front', [{key: 'x', label: 'across', names: sweep.figures, first: cost, spoken},
      {key: 'y', label: 'up', names: sweep.figures, first: figure, spoken}], state => paretoChart(sweep, state.x, state.y)));
  }
  if (figure) page.append(element('section', {}, element('h2', {}, `The best by ${FIGURES[figure].name}`), bestTable(sweep, figure)));
  if (sweep.good.length < sweep.rows.length) page.append(element('section', {}, element('h2', {}, 'What cannot run'), refusedTable(sweep)));
  page.append(element('section', {}, element('h2', {}, 'To reproduce it'), element('pre', {}, `${data.command}\n${data.version}`)));
}
