import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { FIRST } from '../fake-bearer.ts';
import { CHUNKED, chunk, message, ok } from '../messages.ts';
import { startUpstream } from '../raw-upstream.ts';
import { type Sidecar, startSidecar } from '../sidecar.ts';

async function session({ address }: Sidecar): Promise<ClientHttp2Session> {
  const client = connect(`http://${address.host}:${address.port}`);
  onTestFinished(() => client.destroy());
  await once(client, 'connect');
  return client;
}

async function ask(client: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: Buffer) {
  const stream = client.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  let trailers: IncomingHttpHeaders = {};
  stream.on('trailers', (came) => {
    trailers = came;
  });
  const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  return { head, body: await text(stream), trailers };
}

it('Node’s own HTTP/2 client gets many simultaneous answers larger than any window', async () => {
  const upstream = await startUpstream(async (arrived) => {
    const { text: body } = await arrived.body();
    const echoed = body.length === 0 ? '' : chunk(body);
    arrived.answer(message('HTTP/1.1 200 OK', [CHUNKED, `X-Target: ${arrived.head.target}`], echoed));
    arrived.answer('0\r\nX-Length: '.concat(String(body.length), '\r\n\r\n'));
  });
  const sidecar = await startSidecar({ upstream });
  const client = await session(sidecar);

  const asked = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      ask(
        client,
        { ':path': `/${index}`, ':method': 'POST' },
        Buffer.alloc(index * 20_000, String(index % 10)),
      ),
    ),
  );

  asked.forEach(({ head, body, trailers }, index) => {
    expect(head).toMatchObject({ ':status': 200, 'x-target': `/${index}` });
    expect(body === String(index % 10).repeat(index * 20_000)).toBe(true);
    expect(trailers).toMatchObject({ 'x-length': String(index * 20_000) });
  });
  expect(upstream.requests.every(({ head }) => head.value('authorization') === FIRST)).toBe(true);
});

it('Node’s own HTTP/2 client is understood while it uses the dynamic table of HPACK', async () => {
  const upstream = await startUpstream((arrived) => arrived.answer(ok(arrived.head.value('x-same') ?? '')));
  const sidecar = await startSidecar({ upstream });
  const client = await session(sidecar);
  for (let round = 0; round < 50; round++) {
    const same = `value ${round % 7}`.repeat(10);
    expect((await ask(client, { ':path': '/', 'x-same': same, cookie: `a=${round}` })).body).toBe(same);
  }
});
