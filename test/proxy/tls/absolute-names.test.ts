/** Names with the dot of DNS at their end, which saves a pod its search list: the host is the one that is listed. */

import { describe, expect, it } from 'vitest';
import { FIRST } from '../../wire/fake-bearer.ts';
import { message } from '../../wire/messages.ts';
import { redirecting } from '../capture/redirecting.ts';
import { HOST, intercepting, startTlsUpstream } from './intercepting.ts';

const ABSOLUTE = `${HOST}.`;

const get = (authority: string): string => message('GET / HTTP/1.1', [`Host: ${authority}`]);

describe('an absolute name (with a final dot) of a listed host gets the token', () => {
  it.each([
    ['with the dot in SNI', ABSOLUTE],
    ['without it in SNI', HOST],
  ])('by CONNECT, %s', async (_, servername) => {
    const upstream = await startTlsUpstream();
    const interception = await intercepting(upstream);
    const authority = `${ABSOLUTE}:${upstream.port}`;
    const client = await interception.secured({ servername }, authority);
    expect((await client.send(get(authority)).response()).status).toBe(200);
    expect(upstream.arrived).toMatchObject([{ authorization: FIRST, host: `${HOST}:${upstream.port}` }]);
  });

  it.each([
    ['with the dot in SNI', ABSOLUTE],
    ['without it in SNI', HOST],
  ])('by redirection, %s', async (_, servername) => {
    const upstream = await startTlsUpstream();
    const original = { host: '127.0.0.1', port: upstream.port };
    const { secured } = await redirecting({ original, caFile: upstream.caFile });
    const client = await secured({ servername });
    expect((await client.send(get(`${ABSOLUTE}:${upstream.port}`)).response()).status).toBe(200);
    expect(upstream.arrived).toMatchObject([{ authorization: FIRST }]);
  });

  it('by redirection in clear', async () => {
    const upstream = await startTlsUpstream();
    const original = { host: '127.0.0.1', port: upstream.port };
    const { connected } = await redirecting({ original, caFile: upstream.caFile });
    const client = await connected();
    expect((await client.send(get(`${ABSOLUTE}:${upstream.port}`)).response()).status).toBe(200);
    expect(upstream.arrived).toMatchObject([{ authorization: FIRST }]);
  });

  it('through the forward proxy', async () => {
    const upstream = await startTlsUpstream();
    const { sidecar } = await intercepting(upstream, { entry: { upgradeToTls: true } });
    const authority = `${ABSOLUTE}:${upstream.port}`;
    const client = await sidecar.connect();
    client.send(message(`GET http://${authority}/ HTTP/1.1`, [`Host: ${authority}`]));
    expect((await client.response()).status).toBe(200);
    expect(upstream.arrived).toMatchObject([{ authorization: FIRST }]);
  });
});

it('an absolute name of an unlisted host is not listed either', async () => {
  const upstream = await startTlsUpstream();
  const interception = await intercepting(upstream);
  const asked = interception.connected(`other.example.com.:${upstream.port}`);
  await expect(asked).rejects.toThrow('HTTP/1.1 403');
});
