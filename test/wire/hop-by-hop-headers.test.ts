import { describe, expect, it } from 'vitest';
import { get, message, ok } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

async function arrivedHead(fields: readonly string[]) {
  const upstream = await startUpstream(answering(ok()));
  const sidecar = await startSidecar({ upstream });
  expect((await sidecar.exchange(get('/', ...fields))).status).toBe(200);
  const [arrived] = upstream.requests;
  if (arrived === undefined) throw new Error('nothing arrived');
  return arrived.head;
}

async function answeredHead(fields: readonly string[]) {
  const upstream = await startUpstream(answering(ok('body', ...fields)));
  const sidecar = await startSidecar({ upstream });
  return (await sidecar.exchange(get('/'))).head;
}

describe('in a request', () => {
  it.each([
    ['keep-alive', ['Keep-Alive: timeout=5']],
    ['proxy-connection', ['Proxy-Connection: keep-alive']],
    ['proxy-authorization', ['Proxy-Authorization: Basic YTpi']],
    ['te', ['TE: gzip;q=0.5']],
    ['x-secret', ['Connection: x-secret', 'X-Secret: 1']],
    ['x-secret', ['Connection: keep-alive, X-SECRET', 'x-Secret: 1']],
    ['x-secret', ['X-Secret: 1', 'Connection: keep-alive', 'Connection: foo ,\tx-secret,']],
    ['upgrade', ['Upgrade: h2c']],
  ])('%s is not forwarded (%j)', async (name, fields) => {
    const head = await arrivedHead(fields);
    expect(head.names).not.toContain(name);
    expect(head.values('connection').join()).not.toMatch(/secret|upgrade/i);
  });

  it.each([['TE: trailers'], ['TE: gzip, Trailers'], ['TE: deflate;q=0.5 ,trailers']])(
    'TE: %j is forwarded as trailers',
    async (field) => {
      expect((await arrivedHead([field, 'Connection: TE'])).value('te')).toBe('trailers');
    },
  );

  it.each([
    ['host', 'Connection: host'],
    ['authorization', 'Connection: Authorization'],
    ['token-sidecar-hop', 'Connection: Token-Sidecar-Hop'],
  ])('%s cannot be removed by Connection', async (name, field) => {
    expect((await arrivedHead([field])).values(name)).toHaveLength(1);
  });

  it('Content-Length cannot be removed by Connection', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const lines = ['Host: app.test', 'Connection: content-length', 'Content-Length: 20'];

    await sidecar.exchange(message('POST / HTTP/1.1', lines, 'GET /x HTTP/1.1\r\n\r\n!'));

    expect(upstream.targets).toEqual(['/']);
    expect((await upstream.requests[0]?.body())?.text).toBe('GET /x HTTP/1.1\r\n\r\n!');
  });

  it('all other fields are forwarded in order with their case, repetitions and non-ASCII bytes', async () => {
    const fields = [
      'x-Lower-UPPER: 1',
      'Cookie: a=1',
      'Accept: text/html;q=0.5, */*',
      'Cookie: b=2',
      'X-Empty:',
      'Forwarded: for=10.0.0.1',
      'X-Forwarded-For: 10.0.0.1',
      'Via: 1.1 other',
      'X-Latin: gr\xfc\xdfe',
      "!#$%&'*+.^_`|~: odd but legal",
      '__proto__: 1',
      'constructor: 2',
    ];
    const head = await arrivedHead(fields);
    const own = new Set(['host', 'authorization', 'token-sidecar-hop', 'connection']);
    const passed = head.fields.filter(([name]) => !own.has(name.toLowerCase()));
    expect(passed.map(([name, value]) => (value ? `${name}: ${value}` : `${name}:`))).toEqual(fields);
  });
});

describe('in an answer', () => {
  it.each([
    ['proxy-connection', ['Proxy-Connection: close']],
    ['x-secret', ['Connection: X-Secret', 'x-secret: 1']],
    ['token-sidecar-error', ['Token-Sidecar-Error: bad_request']],
    ['token-sidecar-hop', ['token-sidecar-hop: somebody']],
    ['upgrade', ['Upgrade: h2c', 'Connection: upgrade']],
  ])('%s is not forwarded (%j)', async (name, fields) => {
    const head = await answeredHead(fields);
    expect(head.names).not.toContain(name);
    expect(head.values('connection').join()).not.toMatch(/secret/i);
  });

  it('Keep-Alive is not forwarded: a value is always the sidecar’s own', async () => {
    const head = await answeredHead(['Keep-Alive: timeout=99, max=7']);
    expect(head.values('keep-alive').join()).not.toMatch(/99|max/);
  });

  it('Connection: close of the upstream ends neither the connection of the app nor the answer', async () => {
    const upstream = await startUpstream(async (request) => {
      request.answer(ok('whole', 'Connection: close'));
      request.connection.end();
    });
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    expect((await client.send(get('/1')).response()).body).toBe('whole');
    expect((await client.send(get('/2')).response()).body).toBe('whole');
  });

  it('all other fields are forwarded in order with their case and repetitions', async () => {
    const fields = [
      'Set-Cookie: a=1; Path=/',
      'Location: http://elsewhere.test/x',
      'set-cookie: b=2',
      'X-Empty:',
      'Content-Encoding: gzip',
      'Server: raw',
      'X-Latin: gr\xfc\xdfe',
      'WWW-Authenticate: Basic',
      'Via: 1.1 other',
      '__proto__: 1',
    ];
    const head = await answeredHead(fields);
    const own = new Set(['content-length', 'connection', 'keep-alive', 'date']);
    const passed = head.fields.filter(([name]) => !own.has(name.toLowerCase()));
    expect(passed.map(([name, value]) => (value ? `${name}: ${value}` : `${name}:`))).toEqual(fields);
  });

  it('status and reason phrase are forwarded', async () => {
    const upstream = await startUpstream(
      answering(message('HTTP/1.1 299 Rather Fine', ['Content-Length: 0'])),
    );
    const sidecar = await startSidecar({ upstream });

    expect((await sidecar.exchange(get('/'))).head.startLine).toBe('HTTP/1.1 299 Rather Fine');
  });

  it.each([301, 302, 307, 308])('a %i is forwarded, not followed', async (status) => {
    const upstream = await startUpstream(
      answering(message(`HTTP/1.1 ${status} Moved`, ['Location: /elsewhere', 'Content-Length: 0'])),
    );
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(get('/'));

    expect([answer.status, answer.head.value('location')]).toEqual([status, '/elsewhere']);
    expect(upstream.targets).toEqual(['/']);
  });
});
