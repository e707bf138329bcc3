'use strict';

// The process has all numbers ready as texts: this asks for them, and draws them. What is shown of connections, sort, reverse
// and filter, is in the fragment of the address, and is the query as well.

const interval = 1000, timeout = 5000, points = 120;
const byID = id => document.getElementById(id);
const chosen = new URLSearchParams(location.hash.slice(1));
let history = [], process = '', timer = 0, asked = 0, answered = new Date();

// make makes an element with a text, which is never taken for HTML.
function make(name, text, className) {
	const e = document.createElement(name);
	e.textContent = text;
	if (className) e.className = className;
	return e;
}

function draw(page) {
	document.title = page.title + ' \u2013 iWARP';
	byID('title').textContent = page.title;
	byID('about').textContent = page.about;
	byID('tiles').replaceChildren(...page.tiles.map(tile => {
		const e = document.createElement('div');
		e.append(make('h2', tile.name), make('b', tile.value), make('p', tile.more));
		return e;
	}));
	drawErrors(page.errors);
	drawLatencies(page.latencies);
	drawTable(page);
	if (page.process !== process) history = [];
	process = page.process;
	drawPlot(page.point);
}

// show shows a table with rows, or what stands for an empty one.
function show(table, empty, rows) {
	byID(table).hidden = rows.length === 0;
	byID(empty).hidden = rows.length !== 0;
	byID(table).tBodies[0].replaceChildren(...rows);
}

function drawErrors(errors) {
	show('errors', 'noErrors', errors.map(e => {
		const tr = document.createElement('tr');
		tr.append(make('td', e.name, 'text'), make('td', e.new), make('td', e.total));
		tr.classList.toggle('new', e.new !== '');
		return tr;
	}));
}

function drawLatencies(latencies) {
	show('latencies', 'noLatencies', latencies.map(fields => {
		const tr = document.createElement('tr');
		tr.append(...fields.map((f, i) => make('td', f, i === 0 ? 'text' : '')));
		return tr;
	}));
}

function drawTable(page) {
	const table = byID('connections'), focused = document.activeElement.dataset.column;
	table.tHead.rows[0].replaceChildren(...page.columns.map(c => {
		const th = make('th', '', c.column + (c.text ? ' text' : '')), b = make('button', c.title);
		b.dataset.column = c.column;
		th.title = c.help;
		if (c.sorted) th.ariaSort = c.sorted;
		b.onclick = () => sort(c);
		th.append(b);
		return th;
	}));
	if (focused) table.querySelector('[data-column="' + focused + '"]')?.focus();
	table.tBodies[0].replaceChildren(...page.rows.map(fields => {
		const tr = document.createElement('tr');
		tr.append(...fields.map((f, i) => make('td', f, page.columns[i].column + (page.columns[i].text ? ' text' : f === '0' ? ' zero' : ''))));
		return tr;
	}));
	byID('summary').textContent = page.summary;
}

function drawPlot(point) {
	if (!point || point.at === history.at(-1)?.at) return; // none, or the one before again: a key was typed
	history = [...history, point].slice(-points);
	const first = history[0].at, seconds = point.at - first;
	byID('plot').hidden = history.length < 2;
	let most = history[0].received, text = history[0].received_text;
	for (const p of history) {
		if (p.received > most) [most, text] = [p.received, p.received_text];
		if (p.sent > most) [most, text] = [p.sent, p.sent_text];
	}
	byID('scale').textContent = 'most: ' + text + ', in ' + Math.round(seconds) + ' s';
	for (const line of ['received', 'sent']) {
		byID(line).setAttribute('points', history.map(p =>
			((p.at - first) * 120 / (seconds || 1)).toFixed(2) + ',' + (29 - 28 * p[line] / (most || 1)).toFixed(2)).join(' '));
	}
}

// sort sorts by a column, or the other way round if it is sorted by it.
function sort(column) {
	if (column.sorted && !chosen.has('reverse')) chosen.set('reverse', '');
	else chosen.delete('reverse');
	chosen.set('sort', column.column);
	choose();
}

function choose() {
	window.history.replaceState(null, '', '#' + chosen);
	ask();
}

// ask asks once, and again after the interval, unless another question was asked meanwhile, or the page cannot be seen.
async function ask() {
	const mine = ++asked;
	clearTimeout(timer);
	let wrong = '';
	try {
		const answer = await fetch('page.json?' + chosen, {signal: AbortSignal.timeout(timeout)});
		if (!answer.ok) throw new Error('it answers ' + answer.status + ' ' + answer.statusText);
		const page = await answer.json();
		if (mine !== asked) return;
		draw(page);
		answered = new Date();
	} catch (e) {
		wrong = 'The process does not answer (' + e.message + '). What is below is of ' + answered.toLocaleTimeString() + '; this page keeps asking.';
	}
	if (mine !== asked) return;
	byID('gone').textContent = wrong;
	byID('gone').hidden = wrong === '';
	document.body.classList.toggle('stale', wrong !== '');
	if (!document.hidden) timer = setTimeout(ask, interval);
}

byID('filter').value = chosen.get('filter') || '';
byID('filter').oninput = e => {
	if (e.target.value) chosen.set('filter', e.target.value);
	else chosen.delete('filter');
	choose();
};
document.onvisibilitychange = () => { if (!document.hidden) ask(); };
ask();
