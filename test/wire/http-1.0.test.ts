import { describe, expect, it } from 'vitest';
import { FIRST } from './fake-bearer.ts';
import { CHUNKED, chunk, get, LAST_CHUNK, message, ok } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

const GET_1_0 = 'GET /x HTTP/1.0\r\n\r\n';

describe('a client of HTTP/1.0', () => {
  it('is served without Host, and its connection is closed', async () => {
    const upstream = await startUpstream(answering(ok('hello')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    expect(await client.send(GET_1_0).response()).toMatchObject({ status: 200, body: 'hello' });

    expect(await client.closed()).toBe('end');
    const [arrived] = upstream.requests;
    expect(arrived?.head.startLine).toBe('GET /x HTTP/1.1');
    expect(arrived?.head.value('host')).toBe(upstream.authority);
    expect(arrived?.head.value('authorization')).toBe(FIRST);
  });

  it.each([
    [
      'chunked, with trailers',
      `${message('HTTP/1.1 200 OK', [CHUNKED])}${chunk('hel')}${chunk('lo')}0\r\nT: 1\r\n\r\n`,
    ],
    ['empty and chunked', `${message('HTTP/1.1 200 OK', [CHUNKED])}${LAST_CHUNK}`],
  ])('gets no chunked coding when the answer is %s', async (_, bytes) => {
    const upstream = await startUpstream(answering(bytes));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    const answer = await client.send(GET_1_0).response();

    expect(answer.head.names).not.toContain('transfer-encoding');
    expect(answer.body).toBe(bytes.includes('hel') ? 'hello' : '');
    expect(await client.closed()).toBe('end');
  });

  it('sees that an answer broke off', async () => {
    const upstream = await startUpstream();
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();
    client.send(GET_1_0);
    const arrived = await upstream.request();
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED], chunk('half')));
    await client.received.contains('half');

    arrived.connection.end();

    // The end of the connection would be the end of the answer; only a reset says that it is not.
    expect(await client.closed()).toBe('reset');
  });

  it('gets no interim answers', async () => {
    const upstream = await startUpstream(
      answering(`${message('HTTP/1.1 103 Early Hints', ['Link: </x>'])}${ok('final')}`),
    );
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(GET_1_0);

    expect([answer.body, answer.interim]).toEqual(['final', []]);
  });

  it('that asks for keep-alive keeps its connection if the answer has a length', async () => {
    const upstream = await startUpstream(answering(ok('hello')));
    const sidecar = await startSidecar({ upstream });
    const client = await sidecar.connect();

    const first = await client.send('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n').response();

    if (first.head.value('connection')?.toLowerCase() === 'keep-alive') {
      expect((await client.send(GET_1_0).response()).body).toBe('hello');
    } else {
      expect(await client.closed()).toBe('end');
    }
  });

  it('cannot upgrade', async () => {
    const upstream = await startUpstream(answering(ok('plain')));
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange('GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n');

    expect(answer.body).toBe('plain');
    expect(upstream.requests[0]?.head.names).not.toContain('upgrade');
  });

  it('may send a body of known length', async () => {
    const upstream = await startUpstream(async (arrived) => arrived.answer(ok((await arrived.body()).text)));
    const sidecar = await startSidecar({ upstream });

    expect((await sidecar.exchange('POST / HTTP/1.0\r\nContent-Length: 4\r\n\r\nbody')).body).toBe('body');
  });
});

it('a client of HTTP/1.1 gets chunked coding when the length is unknown', async () => {
  const upstream = await startUpstream((arrived) => {
    arrived.answer(message('HTTP/1.1 200 OK', [], 'hello'));
    arrived.connection.end();
  });
  const sidecar = await startSidecar({ upstream });
  const client = await sidecar.connect();

  const answer = await client.send(get('/')).response();

  expect([answer.head.value('transfer-encoding'), answer.body]).toEqual(['chunked', 'hello']);
});
