import { describe, expect, it } from 'vitest';
import { CHUNKED, chunk, get, message, ok, request } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe('trailers', () => {
  it('of a request reach the upstream', async () => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });
    const head = request('POST', '/', [CHUNKED, 'Trailer: X-Checksum']);

    await sidecar.exchange(`${head}${chunk('data')}0\r\nX-Checksum: abc\r\nX-Other: 1\r\n\r\n`);

    const [arrived] = upstream.requests;
    expect(arrived?.head.value('trailer')).toBe('X-Checksum');
    const body = await arrived?.body();
    expect(body?.text).toBe('data');
    expect(body?.trailers.fields).toEqual([
      ['X-Checksum', 'abc'],
      ['X-Other', '1'],
    ]);
  });

  it('of an answer reach the app', async () => {
    const head = message('HTTP/1.1 200 OK', [CHUNKED, 'Trailer: Grpc-Status']);
    const upstream = await startUpstream(
      answering(`${head}${chunk('data')}0\r\nGrpc-Status: 0\r\nGrpc-Message: fine\r\n\r\n`),
    );
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(get('/', 'TE: trailers', 'Connection: TE'));

    expect(answer.body).toBe('data');
    expect(answer.trailers.fields).toEqual([
      ['Grpc-Status', '0'],
      ['Grpc-Message', 'fine'],
    ]);
  });

  it.each([
    'Content-Length: 3',
    'Transfer-Encoding: chunked',
    'Host: other.test',
    'Authorization: Basic YTpi',
  ])('that would change framing, routing or authorisation are not forwarded (%s)', async (field) => {
    const upstream = await startUpstream(answering(ok()));
    const sidecar = await startSidecar({ upstream });

    await sidecar.exchange(`${request('POST', '/', [CHUNKED])}${chunk('data')}0\r\n${field}\r\n\r\n`);

    const trailerSection = upstream.text.split('data')[1] ?? '';
    expect(trailerSection.toLowerCase()).not.toContain(field.toLowerCase());
  });

  it('of an answer that imitate the sidecar’s own fields are not forwarded', async () => {
    const body = `${chunk('data')}0\r\nToken-Sidecar-Error: bad_request\r\n\r\n`;
    const upstream = await startUpstream(answering(message('HTTP/1.1 200 OK', [CHUNKED], body)));
    const sidecar = await startSidecar({ upstream });

    const answer = await sidecar.exchange(get('/'));

    expect([answer.body, answer.trailers.names]).toEqual(['data', []]);
  });
});
