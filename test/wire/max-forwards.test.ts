import { describe, expect, it } from 'vitest';
import { get, ok, request } from './messages.ts';
import { answering, startUpstream } from './raw-upstream.ts';
import { startSidecar } from './sidecar.ts';

describe('Max-Forwards (RFC 9110 §7.6.2)', () => {
  async function start() {
    const upstream = await startUpstream(answering(ok('forwarded')));
    const sidecar = await startSidecar({ upstream });
    return { upstream, client: await sidecar.connect(), sidecar };
  }

  it.each(['OPTIONS', 'TRACE'])(
    'with 0 makes the sidecar answer %s itself, and the connection goes on',
    async (method) => {
      const { upstream, client, sidecar } = await start();

      const answer = await client
        .send(
          request(method, '/a?b', [
            'Max-Forwards: 0',
            'X-One: 1',
            'Authorization: Basic YTpi',
            'Cookie: a=b',
          ]),
        )
        .response(method);

      expect(answer.status).toBe(200);
      expect(answer.head.value('token-sidecar-error')).toBeUndefined();
      if (method === 'TRACE') {
        expect(answer.head.value('content-type')).toBe('message/http');
        expect(answer.body).toBe(
          'TRACE /a?b HTTP/1.1\r\nHost: app.test\r\nMax-Forwards: 0\r\nX-One: 1\r\n\r\n',
        );
      }
      expect(upstream.connections).toHaveLength(0);
      expect((await client.send(get('/next')).response()).body).toBe('forwarded');
      expect(await sidecar.metric('proxy_requests_total', { route: 'api', method, code: '200' })).toBe(1);
    },
  );

  it.each([
    ['OPTIONS', '7', '6'],
    ['TRACE', '1', '0'],
    ['OPTIONS', 'many', 'many'],
    ['GET', '0', '0'],
  ])('of %s is decremented: %s becomes %s', async (method, given, passed) => {
    const { upstream, client } = await start();
    const answer = await client.send(request(method, '/', [`Max-Forwards: ${given}`])).response();
    expect(answer.body).toBe('forwarded');
    expect(upstream.requests[0]?.head.values('max-forwards')).toEqual([passed]);
  });
});
