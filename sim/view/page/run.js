// The page of an iteration, or of several under each other.

function fact(text, name, kind = '') {
  return element('div', {class: 'fact'}, element('b', {class: kind}, text), element('span', {}, name));
}

function memoryFact(result) {
  const memory = result.memory;
  const kind = {fits: 'good', tight: 'warn', 'out-of-memory': 'bad'}[memory.verdict] || '';
  const of = memory.capacity_bytes > 0 ? ` of ${humanBytes(memory.capacity_bytes)}` : '';
  return fact(humanBytes(memory.peak_bytes) + of, `memory on rank ${memory.peak_stage}: ${memory.verdict}`, kind);
}

// Of an iteration that does not finish, until nothing moves any more.
function lengthOf(run) {
  return run.result.iteration_time_s ?? run.timeline.end_ns / 1e9;
}

function runFacts(run) {
  const result = run.result;
  const [low, high] = result.interval_90_s ?? [0, 0];
  const time = humanTime(lengthOf(run) * 1e9);
  const facts = [!run.finishes ? fact('does not finish', `at rest from ${time} on`, 'bad')
    : fact(time, low < high ? `iteration; 90 %: ${humanTime(low * 1e9)} – ${humanTime(high * 1e9)}` : 'iteration')];
  facts.push(result.tokens_per_s > 0 ? fact(digits(result.tokens_per_s, 6), 'tokens/s') : fact(digits(result.samples_per_s), 'samples/s'));
  if (result.mfu > 0) facts.push(fact(percent(result.mfu), `MFU; ${digits(result.model_tflops_per_gpu)} TFLOP/s per GPU`));
  facts.push(fact(percent(result.bubble.over_ideal), `bubble over ideal; ${percent(result.bubble.fraction)} of rank time`));
  if (result.memory.peak_bytes > 0) facts.push(memoryFact(result));
  facts.push(fact(digits(result.gpus, 7), result.gpus === 1 ? 'GPU' : 'GPUs'));
  return element('div', {class: 'facts'}, ...facts);
}

function breakdownParts(result) {
  return Object.entries(result.breakdown_s).map(([name, value]) =>
    ({name: name.replace('_comm', ' communication'), value, paint: CATEGORY_PAINT[name]}));
}

function breakdownSection(runs) {
  const longest = Math.max(...runs.map(run => lengthOf(run)));
  const section = element('section', {id: 'breakdown'}, element('h2', {}, 'Where the time goes'));
  for (const run of runs)
    section.append(element('div', {class: 'barline'}, element('span', {}, run.title || 'iteration'),
      stackedBar(breakdownParts(run.result), longest || 1), element('span', {}, humanTime(lengthOf(run) * 1e9))));
  const names = Object.keys(runs[0].result.breakdown_s).filter(name => runs.some(run => run.result.breakdown_s[name] > 0));
  section.append(legend([...new Set(names.map(name => CATEGORY_PAINT[name]))]));
  const head = ['', ...runs.map(run => run.title || 'time'), ...(runs.length === 1 ? ['share'] : [])];
  const times = table(head, names.map(name => [name.replace('_comm', ' communication'),
    ...runs.map(run => humanTime(run.result.breakdown_s[name] * 1e9)),
    ...(runs.length === 1 ? [percent(runs[0].result.breakdown_s[name] / (lengthOf(runs[0]) || 1))] : [])]));
  section.append(runs.length === 1 ? element('div', {class: 'columns'}, times, pathTable(runs[0])) : times);
  section.append(element('p', {class: 'muted small'},
    'Passes as the busiest rank spends them; communication and the tail as the critical path has them; the bubble is what remains. The parts add up to the iteration.'));
  return section;
}

function timelineSection(runs) {
  const view = new TimelineView(runs);
  const used = new Set(view.sections.flatMap(section => section.paints));
  const section = element('section', {id: 'timeline'}, element('h2', {}, 'Timeline'), view.root,
    legend([...used].sort((a, b) => a - b)));
  const slices = view.sections.reduce((sum, one) => sum + one.data.lanes.reduce((lanes, lane) => lanes + lane.start.length, 0), 0);
  let note = `${slices.toLocaleString('en-US')} slices. Replicas that do the same at the same time are simulated once. Outlined: the critical path.`;
  for (const run of runs)
    if (run.timeline.shown_ranks < run.timeline.ranks)
      note += ` ${run.title || run.name}: the first ${run.timeline.shown_ranks} of ${run.timeline.ranks} ranks are shown; run --trace writes all of them.`;
  section.append(element('p', {class: 'muted small'}, note));
  window.stagecraft = {timeline: view};
  return section;
}

function pathTable(run) {
  const whole = lengthOf(run) * 1e9 || 1;
  return table(['critical path', 'tasks', 'time', 'share'],
    run.critical_path.map(([name, ns, tasks]) => [name, digits(tasks, 7), humanTime(ns), percent(ns / whole)]));
}

function memorySection(run) {
  const memory = run.result.memory;
  const stages = memory.stages.slice(0, run.held_bytes.length);
  if (stages.length === 0 || memory.peak_bytes === 0) return null;
  const most = 1.04 * Math.max(memory.capacity_bytes, ...stages.map(stage => stage.peak_bytes));
  const section = element('section', {class: 'memory'}, element('h2', {}, run.title ? `Memory over time: ${run.title}` : 'Memory over time'),
    element('p', {class: 'muted small'}, `Bands from below: weights, gradients, optimizer, buffers and overheads; on top what passes hold: activations, and gradients that are whole for a while. The optimizer step has bands of its own. ` +
      (memory.capacity_bytes > 0 ? `Dashed: the capacity, ${humanBytes(memory.capacity_bytes)}. ` : '') + (run.memory_rule || '')));
  section.append(element('div', {class: 'charts'}, ...stages.map((stage, rank) =>
    memoryChart(stage, run.held_bytes[rank], run.held_beside[rank], memory.capacity_bytes, most, run.timeline.end_ns))));
  if (stages.length < memory.stages.length)
    section.append(element('p', {class: 'muted small'}, `The first ${stages.length} of ${memory.stages.length} ranks.`));
  const keys = ['weights', 'gradients', 'optimizer', 'activations', 'buffers', 'overhead', 'peak'];
  section.append(element('details', {}, element('summary', {}, 'as a table'),
    table(['rank', ...keys], memory.stages.map(stage => [String(stage.stage), ...keys.map(key => humanBytes(stage[key + '_bytes']))]))));
  return section;
}

function networkSection(run) {
  const network = run.result.network;
  if (!network || !network.links || network.links.length === 0) return null;
  const section = element('section', {id: 'network'}, element('h2', {}, 'Links that traffic shares'));
  section.append(table(['link', 'alike', 'capacity', 'used', 'busy', 'full', 'delay it caused'], network.links.map(link => [
    link.name, digits(link.alike, 7), digits(link.capacity_bytes_per_s / 1e9) + ' GB/s', percent(link.utilisation),
    humanTime(link.busy_s * 1e9), humanTime(link.saturated_s * 1e9), humanTime(link.delay_s * 1e9)])));
  const whole = lengthOf(run) || 1;
  for (const link of network.links.slice(0, 12)) {
    const parts = [{name: 'full', value: link.saturated_s, paint: EXPOSED}, {name: 'busy', value: link.busy_s - link.saturated_s, paint: 4},
      {name: 'idle', value: Math.max(0, whole - link.busy_s), paint: BUBBLE}];
    section.append(element('div', {class: 'barline'}, element('span', {class: 'small'}, link.name), stackedBar(parts, whole),
      element('span', {}, percent(link.utilisation))));
  }
  section.append(element('p', {class: 'muted small'}, 'Of the iteration: full (striped), busy but not full, idle; on the right what it carried of what it could.'));
  if (run.link_use && run.link_use.length > 0) section.append(element('h3', {}, 'Use over time'),
    element('div', {class: 'charts'}, ...run.link_use.map((shares, i) => linkChart(network.links[i], shares, run.timeline.end_ns))),
    element('p', {class: 'muted small'}, 'Dashed: full. Each transfer of this job counts at its mean rate while it lasts.'));
  return section;
}

function provenanceSection(runs) {
  const section = element('section', {}, element('h2', {}, 'What it stands on'));
  const names = Object.keys(runs[0].result.provenance).filter(name => runs.some(run => run.result.provenance[name] > 0));
  section.append(table(['compute and communication', ...runs.map(run => run.title || 'share')],
    names.map(name => [name, ...runs.map(run => percent(run.result.provenance[name]))])));
  const list = (title, items) => items.length === 0 ? null
    : element('div', {}, element('h3', {}, title), element('ul', {}, ...items.map(text => element('li', {}, text))));
  for (const run of runs) {
    if (run.profile) section.append(element('p', {}, `${run.title ? run.title + ': ' : ''}profile ${run.profile}${run.software ? ', software ' + run.software : ''}`));
    section.append(...[list('Notes', run.result.warnings || []), list('Assumed', run.assumed)].filter(part => part !== null));
  }
  return section;
}

function reproduceSection(data, runs) {
  const section = element('section', {}, element('h2', {}, 'To reproduce it'),
    element('pre', {}, `${data.command}\n${data.version}`));
  for (const run of runs)
    section.append(element('details', {}, element('summary', {}, `${run.title || run.name}: scenario ${run.scenario_hash}, timeline ${run.timeline_hash}`),
      element('pre', {}, run.yaml)));
  return section;
}

function runPage(data) {
  const runs = data.runs;
  const page = document.getElementById('page');
  page.append(element('h1', {}, data.title));
  if (runs.length === 1) {
    page.append(element('p', {class: 'muted'}, `${runs[0].result.gpus.toLocaleString('en-US')} GPUs · ${runs[0].headline}`), runFacts(runs[0]));
  } else {
    page.append(comparedRuns(runs));
  }
  for (const line of data.words) page.append(element('p', {}, line));
  for (const line of data.refused) page.append(element('p', {class: 'bad'}, line));
  page.append(timelineSection(runs), breakdownSection(runs));
  for (const run of runs) page.append(...[memorySection(run), networkSection(run)].filter(part => part !== null));
  page.append(provenanceSection(runs), reproduceSection(data, runs));
}

function comparedRuns(runs) {
  const first = lengthOf(runs[0]);
  return table(['', 'iteration', 'relative', 'throughput', 'MFU', 'bubble over ideal', 'memory', ''], runs.map(run => [
    run.title || run.name, humanTime(lengthOf(run) * 1e9), digits(lengthOf(run) / first, 3),
    run.result.tokens_per_s > 0 ? digits(run.result.tokens_per_s, 6) + ' tokens/s' : digits(run.result.samples_per_s) + ' samples/s',
    run.result.mfu > 0 ? percent(run.result.mfu) : '–', percent(run.result.bubble.over_ideal), humanBytes(run.result.memory.peak_bytes),
    run.result.memory.verdict]));
}
