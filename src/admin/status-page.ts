/** The status page, for a person with a port-forward: static HTML that reads `/api/status` beside it. */

import { type AdminEndpoint, json } from './admin-server.ts';

export function statusEndpoint(read: () => unknown): AdminEndpoint {
  return { method: 'GET', audience: 'people', answer: () => json(200, read()) };
}

export const statusPageEndpoint: AdminEndpoint = {
  method: 'GET',
  audience: 'people',
  answer: () => ({
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: PAGE,
    headers: {
      'Content-Security-Policy':
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'",
      'Referrer-Policy': 'no-referrer',
      'X-Frame-Options': 'DENY',
    },
  }),
};

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>token-sidecar</title>
<style>
  :root { color-scheme: light dark; --ok: #1a7f37; --bad: #cf222e; --muted: #6e7781; --line: #d0d7de55; }
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
  h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
  table { border-collapse: collapse; width: 100%; } caption { text-align: left; font-weight: 600; }
  th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
  th { font-weight: 600; } .num { text-align: right; font-variant-numeric: tabular-nums; }
  .ok { color: var(--ok); } .bad { color: var(--bad); } .muted { color: var(--muted); }
  pre { overflow-x: auto; } meter { width: 10rem; } ol { list-style: none; padding: 0; margin: 0; display: flex; gap: .3rem; flex-wrap: wrap; }
  ol li { border-radius: .3rem; padding: 0 .4rem; border: 1px solid var(--line); font-size: .85rem; }
</style>
<h1>token-sidecar <span id="version" class="muted"></span></h1>
<p id="summary" role="status" aria-live="polite">Loading…</p>
<section id="configuration" hidden><h2>Configuration</h2><p id="generation"></p><pre id="refusal" class="bad"></pre></section>
<h2 id="credentials-title">Credentials</h2>
<div id="credentials"></div>
<h2>Routes</h2>
<table aria-label="Routes"><thead><tr><th>Route<th>Upstream<th>HTTP<th>Credential<th class="num">Requests<th class="num">Per second<th class="num">In flight<th class="num">Errors<th class="num">gRPC calls<th class="num">Not OK</thead><tbody id="routes"></tbody></table>
<script>
  const byId = (id) => document.getElementById(id);
  let previous;
  function element(name, text, className) {
    const node = document.createElement(name);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  }
  function row(cells) {
    const tr = element('tr');
    for (const [text, className] of cells) tr.append(element('td', text, className));
    return tr;
  }
  function credential(c) {
    const box = element('section');
    const lifetime = c.expiresAt && c.requestedAt ? (Date.parse(c.expiresAt) - Date.parse(c.requestedAt)) / 1000 : 0;
    const head = element('p');
    head.append(element('strong', c.name), ' ', element('span', c.ready ? 'valid token' : 'no valid token', c.ready ? 'ok' : 'bad'));
    if (!c.required) head.append(' (not required)');
    if (c.ready) {
      const meter = element('meter');
      meter.max = lifetime; meter.value = Math.max(0, c.expiresInSeconds);
      meter.setAttribute('aria-label', 'life left');
      head.append(' ', meter, ' ' + c.expiresInSeconds + ' s of ' + Math.round(lifetime) + ' s left');
    }
    box.append(head);
    const facts = [];
    if (c.tokenUrl) facts.push('from ' + c.tokenUrl);
    if (c.nextGrantAt) facts.push('next grant ' + c.nextGrantAt + ' (' + c.nextGrantReason + ')');
    if (c.grantInFlight) facts.push('a grant is in flight');
    if (c.consecutiveFailures) facts.push(c.consecutiveFailures + ' failures in a row');
    if (facts.length) box.append(element('p', facts.join(' · '), 'muted'));
    if (c.mountedCredentials.detail) box.append(element('p', c.mountedCredentials.detail, 'bad'));
    if (c.lastFailure) box.append(element('p', 'last failure ' + c.lastFailure.at + ': ' + c.lastFailure.result + ', ' + c.lastFailure.detail, 'bad'));
    const list = element('ol');
    list.setAttribute('aria-label', 'Latest grants');
    for (const g of c.history) {
      const item = element('li', g.reason + ' ' + Math.round(g.durationMs) + ' ms', g.result === 'success' ? 'ok' : 'bad');
      item.title = g.at + ' ' + g.result;
      list.append(item);
    }
    box.append(list);
    return box;
  }
  function spoken(r) {
    return r.upstreamSpeaks === undefined || r.upstreamSpeaks === r.protocol ? r.protocol : r.protocol + ' (' + r.upstreamSpeaks + ')';
  }
  function configuration(c) {
    byId('configuration').hidden = c === undefined;
    if (c === undefined) return;
    const standing = {
      current: 'It is what the file says.',
      waiting: 'The file says something else, which waits for tokens since ' + c.waitingSince + ':',
      refused: 'The file says something else, which was not taken at ' + c.refusedAt + ' (' + c.reason + '):',
    };
    byId('generation').textContent = 'Generation ' + c.generation + ' of ' + c.file + ', in use since ' + c.since + '. ' + standing[c.state];
    byId('refusal').textContent = c.errors || (c.missing || []).join('\n');
  }
  function show(status) {
    configuration(status.configuration);
    byId('version').textContent = status.version;
    const mib = (bytes) => bytes === undefined ? '?' : (bytes / 1048576).toFixed(1) + ' MiB';
    byId('summary').textContent = (status.draining ? 'Draining. ' : '') + 'Up ' + status.uptimeSeconds + ' s, ' +
      mib(status.memory.anonymousBytes) + ' of own memory (' + mib(status.memory.residentBytes) + ' resident).';
    byId('credentials').replaceChildren(...status.credentials.map(credential));
    const now = performance.now();
    byId('routes').replaceChildren(...status.routes.map((r) => {
      const { grpc } = r.requests;
      const before = previous && previous.totals.get(r.name);
      const rate = before === undefined ? '' : ((r.requests.total - before) / ((now - previous.at) / 1000)).toFixed(1);
      return row([[r.name], [r.upstream], [spoken(r)], [r.credential], [r.requests.total, 'num'], [rate, 'num'], [r.requests.inFlight, 'num'], [r.requests.errors, 'num'],
        ...(grpc.calls === 0 ? [['', 'num'], ['', 'num']] : [[grpc.calls, 'num'], [grpc.failures, 'num']])]);
    }));
    previous = { at: now, totals: new Map(status.routes.map((r) => [r.name, r.requests.total])) };
  }
  async function refresh() {
    try { show(await (await fetch('api/status')).json()); }
    catch { byId('summary').textContent = 'The sidecar does not answer.'; }
    setTimeout(refresh, 2000);
  }
  refresh();
</script>
</html>
`;
