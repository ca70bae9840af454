import { request } from 'node:https';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type IssuedCertificate,
  issueCertificate,
} from '../../../src/injector/certificate/certificate-authority.ts';
import { manageCertificate } from '../../../src/injector/certificate/self-managed-certificate.ts';
import { createInjectorMetrics } from '../../../src/injector/metrics.ts';
import { startWebhookListener } from '../../../src/injector/webhook-listener.ts';
import { connectKubernetes } from '../../../src/platform/kubernetes/client.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import { captureLog } from '../../support/log-capture.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { volume } from '../../support/volume.ts';
import { FakeKubernetes, type StoredObject } from './fake-kubernetes.ts';
import { passUntil } from './passing-time.ts';

const HOST = 'injector.system.svc';
const SECRETS = '/api/v1/namespaces/system/secrets';
const CONFIGURATIONS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';
const CONFIGURATION = {
  metadata: { name: 'injector' },
  webhooks: [{ name: 'a', clientConfig: { url: 'https://x' } }],
};

/** Certificates are backdated by an hour: within it, ones made later on the manual clock are valid now. */
const LIFETIME_MS = 27 * 60_000;
const RENEWAL_MS = (LIFETIME_MS * 2) / 3;
const MINUTE_MS = 60_000;
/** Between two reviews. */
const STEP_MS = volume(3000, 1000);

interface TrustingWebhook {
  readonly clientConfig: { readonly caBundle?: string };
}

async function start() {
  const fake = await FakeKubernetes.start();
  fake.put(CONFIGURATIONS, CONFIGURATION);
  const clock = new ManualClock();
  // Real connections check certificates by the real time.
  clock.stepWall(Date.now() - clock.now().wallMs);
  const kubeconfig = await fake.kubeconfig('system');
  const { log, lines } = captureLog();

  const metrics = createInjectorMetrics(new Registry());

  async function replica(identity: string) {
    const certificates = manageCertificate(connectKubernetes(kubeconfig, clock), {
      namespace: 'system',
      secretName: 'certificates',
      webhooks: [{ kind: 'mutating', name: 'injector' }],
      policy: { lifetimeMs: LIFETIME_MS, propagationMs: MINUTE_MS, hosts: [HOST] },
      identity,
      issue: issueCertificate,
      clock,
      random: () => 0.5,
      metrics,
      log,
    });
    const listener = await startWebhookListener({
      listen: { host: '127.0.0.1', port: 0 },
      certificates,
      webhooks: { '/mutate': async (body) => ({ status: 200, body: body.toString() }) },
      metrics,
      clock,
      log,
    });
    let closed: Promise<void> | undefined;
    const close = (): Promise<void> => (closed ??= certificates.close());
    onTestFinished(async () => {
      await close();
      const drained = listener.drain(0, 0);
      await clock.advance(0);
      await drained;
    });
    return { certificates, port: listener.address.port, close };
  }

  const bundle = (): string => {
    const [webhook] = (fake.get(`${CONFIGURATIONS}/injector`)?.['webhooks'] ??
      []) as readonly TrustingWebhook[];
    return Buffer.from(webhook?.clientConfig.caBundle ?? '', 'base64').toString();
  };
  return {
    fake,
    clock,
    lines,
    replica,
    bundle,
    authorities: () => bundle().match(/BEGIN CERTIFICATE/g)?.length ?? 0,
    stored: (key: string) => {
      const data = fake.get(`${SECRETS}/certificates`)?.['data'] as Record<string, string> | undefined;
      return Buffer.from(data?.[key] ?? '', 'base64').toString();
    },
  };
}

/** One review on a connection of its own, trusting what the API server would; what the certificate was. */
function review(port: number, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        servername: HOST,
        ca,
        path: '/mutate',
        method: 'POST',
        agent: false,
        headers: { 'content-type': 'application/json' },
      },
      (response) => {
        const { socket } = response as unknown as { socket: import('node:tls').TLSSocket };
        const { fingerprint256 } = socket.getPeerCertificate();
        response.resume().on('end', () => resolve(fingerprint256));
      },
    );
    sent.on('error', reject);
    sent.end('{}');
  });
}

it('the first replica makes a certificate, and all serve it once the webhooks trust it', async () => {
  const { clock, replica, bundle, authorities, fake } = await start();
  const [first, second] = [await replica('first'), await replica('second')];
  await passUntil(clock, () => authorities() === 1);
  await passUntil(clock, () =>
    [first, second].every(({ certificates }) => certificates.current() !== undefined),
  );

  expect(await review(first.port, bundle())).toBe(await review(second.port, bundle()));
  expect(fake.get(`${CONFIGURATIONS}/injector`)).toMatchObject({
    webhooks: [{ clientConfig: { url: 'https://x' } }],
  });
  expect(fake.get(`${SECRETS}/certificates`)).toMatchObject({ type: 'kubernetes.io/tls' });
});

it('a rotation fails no review: old and new CA are trusted until the old one has ended', async () => {
  const { clock, replica, bundle, authorities, stored, fake } = await start();
  const replicas = [await replica('first'), await replica('second')];
  await passUntil(clock, () => authorities() === 1);
  await passUntil(clock, () => replicas.every(({ certificates }) => certificates.current() !== undefined));
  const seen = new Set<string>();
  const ask = async (): Promise<void> => {
    for (const { port } of replicas) seen.add(await review(port, bundle()));
  };
  await ask();
  expect(seen.size).toBe(1);

  await clock.advance(RENEWAL_MS);
  await passUntil(clock, () => stored('next.crt') !== '');
  const next = stored('next.crt');
  await ask();
  await passUntil(clock, () => authorities() === 2);
  // One replica loses its watch, and is late.
  fake.failNext(/watch=true.*|secrets\?/, { status: 500 });
  fake.breakWatches();
  while (stored('tls.crt') !== next) {
    await ask();
    await clock.advance(STEP_MS);
  }
  await ask();
  await passUntil(clock, () => replicas.every(({ certificates }) => certificates.current()?.cert === next));
  await ask();
  expect(seen.size).toBe(2);
  expect(authorities()).toBe(2);

  await clock.advance(LIFETIME_MS - RENEWAL_MS + MINUTE_MS);
  await passUntil(clock, () => authorities() === 1);
  await ask();
  expect(seen.size).toBe(2);
});

it('once a clock that was a year ahead is right again, a certificate of today takes the place of that year’s', async () => {
  const { clock, replica, bundle, authorities, stored } = await start();
  const YEAR_MS = 365 * 86_400_000;
  clock.stepWall(YEAR_MS);
  const one = await replica('first');
  await passUntil(clock, () => authorities() === 1 && one.certificates.current() !== undefined);
  const ahead = stored('tls.crt');
  clock.stepWall(-YEAR_MS);
  await passUntil(clock, () => stored('tls.crt') !== ahead && bundle().startsWith(stored('ca.crt')));
  expect(one.certificates.current()?.cert).toBe(stored('tls.crt'));
  await review(one.port, bundle());
  // That year's CA is forgotten, and stays with the webhooks for as long as any other that is found there.
  expect(authorities()).toBe(2);
  await passUntil(clock, () => authorities() === 1);
  expect(bundle()).toBe(stored('ca.crt'));
});

it('a webhook that was applied again without its CA gets it back', async () => {
  const { clock, replica, authorities, fake } = await start();
  await replica('first');
  await passUntil(clock, () => authorities() === 1);
  fake.put(CONFIGURATIONS, CONFIGURATION);
  expect(authorities()).toBe(0);
  await passUntil(clock, () => authorities() === 1);
});

it('another replica goes on where the leader stopped', async () => {
  const { clock, replica, authorities, stored } = await start();
  const first = await replica('first');
  await passUntil(clock, () => authorities() === 1);
  const second = await replica('second');
  await clock.advance(RENEWAL_MS);
  await passUntil(clock, () => stored('next.crt') !== '');
  const next = stored('next.crt');
  await first.close();
  await passUntil(clock, () => second.certificates.current()?.cert === next);
});

it('whatever fails is tried again', async () => {
  const { clock, replica, authorities, fake, lines } = await start();
  fake.failNext(/^POST .*secrets/, { status: 500 });
  fake.failNext(/^POST .*secrets/, 'disconnect');
  fake.failNext(/^PATCH/, { status: 429, retryAfter: '1' });
  fake.failNext(/^GET .*configurations\/injector/, { status: 403 });
  await replica('first');
  await passUntil(clock, () => authorities() === 1);
  const failed = lines.filter((line) => line.includes('certificate not looked after'));
  expect(failed).toHaveLength(4);
  // Each waits by how many there were before it without a success.
  expect(failed.slice(0, 2).map((line) => JSON.parse(line).failures)).toEqual([1, 2]);
});

it('a Secret that was made empty is filled, and keeps what else it is', async () => {
  const { clock, replica, authorities, fake, stored } = await start();
  fake.put(SECRETS, { metadata: { name: 'certificates', labels: { team: 'x' } }, type: 'Opaque' });
  await replica('first');
  await passUntil(clock, () => authorities() === 1);
  expect(fake.get(`${SECRETS}/certificates`)).toMatchObject({
    type: 'Opaque',
    metadata: { labels: { team: 'x' } },
  });
  expect(stored('tls.key')).toContain('PRIVATE KEY');
});

it('of two that make a certificate at once, one wins and both serve its', async () => {
  const { clock, replica, authorities, fake } = await start();
  // Both believe that they lead.
  fake.failNext(/^PUT .*secrets/, { status: 409 });
  fake.put(SECRETS, { metadata: { name: 'certificates' } });
  const first = await replica('first');
  await passUntil(clock, () => authorities() === 1);
  await passUntil(clock, () => first.certificates.current() !== undefined);
});

it('somebody who undoes every write does not make it write without end', async () => {
  const { clock, replica, authorities, fake } = await start();
  await replica('first');
  await passUntil(clock, () => authorities() === 1);
  const writes = (): number => fake.requests.filter((request) => request.startsWith('PATCH')).length;
  const [wroteBefore, startedAtMs] = [writes(), clock.now().monotonicMs];
  for (let undone = 0; undone < 5; undone++) {
    fake.put(CONFIGURATIONS, CONFIGURATION);
    await passUntil(clock, () => authorities() === 1);
  }
  expect(writes() - wroteBefore).toBe(5);
  expect(clock.now().monotonicMs - startedAtMs).toBeGreaterThanOrEqual(4000);
});

describe('whatever is done to the Secret, no review fails', () => {
  /** Two replicas that serve, and a review of each at every step until `condition` holds. */
  async function serving() {
    const all = await start();
    const { clock, replica, bundle, authorities } = all;
    const replicas = [await replica('first'), await replica('second')];
    await passUntil(clock, () => authorities() === 1);
    await passUntil(clock, () => replicas.every(({ certificates }) => certificates.current() !== undefined));
    const ask = async (): Promise<void> => {
      for (const { port } of replicas) await review(port, bundle());
    };
    const askUntil = async (condition: () => boolean, stepMs = STEP_MS): Promise<void> => {
      while (!condition()) {
        await ask();
        await clock.advance(stepMs);
      }
      await ask();
    };
    const everyServes = (cert: string) => (): boolean =>
      replicas.every(({ certificates }) => certificates.current()?.cert === cert);
    return { ...all, ask, askUntil, everyServes };
  }

  const secretOf = ({ cert, key, ca }: IssuedCertificate) => ({
    metadata: { name: 'certificates' },
    data: Object.fromEntries(
      Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca }).map(([name, text]) => [
        name,
        Buffer.from(text).toString('base64'),
      ]),
    ),
  });

  it('restored from a backup: the old certificate is shown once it is trusted beside the one in use', async () => {
    const { fake, clock, askUntil, everyServes, authorities } = await serving();
    const backup = await issueCertificate({
      hosts: [HOST],
      nowMs: clock.now().wallMs,
      lifetimeMs: LIFETIME_MS,
    });
    fake.put(SECRETS, secretOf(backup));
    const startedAtMs = clock.now().monotonicMs;
    await askUntil(everyServes(backup.cert));
    expect(authorities()).toBe(2);
    expect(clock.now().monotonicMs - startedAtMs).toBeGreaterThanOrEqual(MINUTE_MS);
    // The one that it took the place of is trusted until no replica can show it any more.
    await askUntil(() => authorities() === 1, MINUTE_MS);
    expect(clock.now().monotonicMs - startedAtMs).toBeGreaterThanOrEqual(15 * MINUTE_MS);
  });

  it('restored from a backup that has ended: a new certificate takes its place, likewise', async () => {
    const { fake, clock, askUntil, stored, everyServes } = await serving();
    const before = stored('tls.crt');
    const nowMs = clock.now().wallMs - 2 * LIFETIME_MS;
    fake.put(SECRETS, secretOf(await issueCertificate({ hosts: [HOST], nowMs, lifetimeMs: LIFETIME_MS })));
    const ended = stored('tls.crt');
    await askUntil(() => ![before, ended].includes(stored('tls.crt')));
    await askUntil(everyServes(stored('tls.crt')));
  });

  it('deleted: it is made again, with what the replicas still show', async () => {
    const { fake, askUntil, stored } = await serving();
    const [cert, key] = [stored('tls.crt'), stored('tls.key')];
    fake.delete(SECRETS, 'certificates');
    await askUntil(() => stored('tls.crt') !== '');
    expect([stored('tls.crt'), stored('tls.key')]).toEqual([cert, key]);
  });

  it('told to rotate: a new certificate takes over in the way of every rotation', async () => {
    const { fake, askUntil, stored, everyServes } = await serving();
    const before = stored('tls.crt');
    const secret = fake.get(`${SECRETS}/certificates`) as StoredObject;
    fake.put(SECRETS, {
      ...secret,
      metadata: { ...secret.metadata, annotations: { 'token-sidecar.dev/rotate': 'now' } },
    });
    await askUntil(() => stored('tls.crt') !== before);
    await askUntil(everyServes(stored('tls.crt')));
    expect(fake.get(`${SECRETS}/certificates`)?.metadata['annotations']).toEqual({});
  });

  it('taken over from another source: the CA that replicas of the old kind show stays trusted for a while', async () => {
    const { fake, clock, askUntil, bundle } = await serving();
    const helm = await issueCertificate({
      hosts: [HOST],
      nowMs: clock.now().wallMs,
      lifetimeMs: LIFETIME_MS,
    });
    const caBundle = Buffer.from(bundle() + helm.ca).toString('base64');
    fake.put(CONFIGURATIONS, { ...CONFIGURATION, webhooks: [{ name: 'a', clientConfig: { caBundle } }] });
    const startedAtMs = clock.now().monotonicMs;
    await askUntil(() => clock.now().monotonicMs - startedAtMs > 14 * MINUTE_MS, MINUTE_MS);
    expect(bundle()).toContain(helm.ca);
    await askUntil(() => !bundle().includes(helm.ca), MINUTE_MS);
  });
});

it('no private key is ever logged', async () => {
  const { clock, replica, authorities, lines, stored } = await start();
  await replica('first');
  await passUntil(clock, () => authorities() === 1);
  const key = stored('tls.key').split('\n')[1] as string;
  expect(lines.join('\n')).not.toContain(key);
});
