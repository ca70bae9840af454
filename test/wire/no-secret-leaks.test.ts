import { describe, expect, it } from 'vitest';
import { selfSigned } from './certificate.ts';
import { FakeBearer, renewable, TOKEN_MARK } from './fake-bearer.ts';
import { answer, get, message, post, request } from './messages.ts';
import { answering, type Script, startUpstream } from './raw-upstream.ts';
import { type RouteOverrides, startSidecar } from './sidecar.ts';

const SECRET = 'client-side-secret';
const FIELDS = [`Authorization: Basic ${SECRET}`, `Cookie: ${SECRET}`, `X-Api-Key: ${SECRET}`];

/** Ways to fail, each of which might tempt somebody to log or to answer with what was at hand. */
const FAILURES: [string, Script, RouteOverrides, 'plain'?][] = [
  ['a broken connection', (arrived) => arrived.connection.destroy(), {}],
  ['garbage', answering('garbage\r\n\r\n'), {}],
  ['a broken answer', answering(message('HTTP/1.1 200 OK', ['X : y'])), {}],
  ['a refused token', answering(answer(401)), {}],
  ['a refused token, renewal off', answering(answer(401)), { retryOn401: false }],
  ['silence', () => {}, { timeouts: { responseMs: 50 } }],
  ['a failed handshake', () => {}, { upstream: { protocol: 'https' }, timeouts: { connectMs: 50 } }, 'plain'],
  ['a refused client', () => {}, { existingAuthorization: 'reject' }],
];

describe('no token and nothing that the app sent appears in a log line or an answer after', () => {
  it.each(FAILURES)('%s', async (_, script, route, transport) => {
    const upstream = await startUpstream(script, transport);
    const sidecar = await startSidecar({ upstream, bearer: renewable(), route });

    const answered = [
      await sidecar.exchange(get(`/x?access_token=${SECRET}`, ...FIELDS)),
      await sidecar.exchange(post('/x', SECRET, ...FIELDS)),
      await sidecar.exchange(get('/', `X-Malformed: ${SECRET}\0`)),
      await sidecar.exchange(request(`BAD(${SECRET}`, '/')),
    ];
    await sidecar.idle();

    const told = answered.map(({ head, body }) => JSON.stringify([head.startLine, head.fields, body]));
    expect([...sidecar.logLines, ...told].join('\n')).not.toMatch(new RegExp(`${TOKEN_MARK}|${SECRET}`));
  });

  it('an untrusted certificate', async () => {
    const upstream = await startUpstream(() => {}, selfSigned('127.0.0.1'));
    const sidecar = await startSidecar({ upstream });

    const answered = await sidecar.exchange(get(`/?access_token=${SECRET}`, ...FIELDS));

    expect([...sidecar.logLines, answered.body].join('\n')).not.toMatch(
      new RegExp(`${TOKEN_MARK}|${SECRET}`),
    );
  });

  it('a token source that fails with an error full of secrets', async () => {
    const upstream = await startUpstream();
    const failure = Object.assign(new Error('refused'), { request: { authorization: `Basic ${SECRET}` } });
    const bearer = new FakeBearer({ held: undefined, obtain: () => Promise.reject(failure) });
    const sidecar = await startSidecar({ upstream, bearer });

    const answered = await sidecar.exchange(get('/'));

    expect([...sidecar.logLines, answered.body].join('\n')).not.toContain(SECRET);
  });
});
