import { expect, it } from 'vitest';
import type { CaptureConfig } from '../../src/config/config.ts';
import { systemClock } from '../../src/platform/time/clock.ts';
import { createAuthority, LeafCertificates } from '../../src/proxy/tls/interception-ca.ts';
import { garbageCollector } from '../support/collect-garbage.ts';
import { turnsDuring } from '../support/turns.ts';
import { FakeBearer } from '../wire/fake-bearer.ts';
import { message, ok } from '../wire/messages.ts';
import { answering, startUpstream } from '../wire/raw-upstream.ts';
import { forwardTo, routeTo, type SidecarSettings, startSidecar } from '../wire/sidecar.ts';

const REPLACED = 8;

it('a replaced configuration and its tokens are released from memory', async () => {
  const collect = garbageCollector();
  const upstream = await startUpstream(answering(ok('hello')), undefined);
  const forwardProxy = forwardTo(upstream);
  const { allow: hosts, timeouts } = forwardProxy;
  const captured = { host: 'captured.test', address: '127.0.0.1', ports: [], clearPorts: [] };
  const capture: CaptureConfig = { hosts: hosts.map((host) => ({ ...host, ...captured })) };
  const bearers: WeakRef<FakeBearer>[] = [];
  const leaves = new LeafCertificates(createAuthority({ names: ['a.test'], nowMs: Date.now() }), systemClock);
  const redirection = { leaves, findOriginal: () => undefined };
  const settings = (): SidecarSettings => {
    const bearer = new FakeBearer();
    bearers.push(new WeakRef(bearer));
    return { bearer, forwardProxy, capture, redirect: { port: 0, hosts, timeouts } };
  };
  const sidecar = await startSidecar({ ...settings(), ...redirection });
  const { host, port } = upstream.address;
  const authority = `${host}:${port}`;
  for (let times = 0; times < REPLACED; times++) {
    const answer = await sidecar.exchange(
      message(`GET http://${authority}/ HTTP/1.1`, [`Host: ${authority}`]),
    );
    expect(answer.body).toBe('hello');
    await sidecar.reconfigure(settings());
  }
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  // By the connection to the upstream neither, which is the first one's still.
  expect(upstream.connections).toHaveLength(1);
  const kept = bearers.map((bearer) => bearer.deref() !== undefined);
  expect(kept).toEqual([...Array.from({ length: REPLACED }, () => false), true]);
});

it('a configuration of many routes is opened in parts, and unchanged routes keep their connections', async () => {
  const upstream = await startUpstream(answering(ok('hello')), undefined);
  const routes = Array.from({ length: 500 }, (_, index) => ({
    ...routeTo(upstream),
    name: `route-${index}`,
    match: { pathPrefix: `/route-${index}/` },
  }));
  const sidecar = await startSidecar({ routes });
  expect((await sidecar.exchange(message('GET /route-7/ HTTP/1.1', ['Host: app.test']))).body).toBe('hello');
  expect(await turnsDuring(() => sidecar.reconfigure({ routes }))).toBeGreaterThan(8);
  expect((await sidecar.exchange(message('GET /route-7/ HTTP/1.1', ['Host: app.test']))).body).toBe('hello');
  expect(upstream.connections).toHaveLength(1);
});
