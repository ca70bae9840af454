/** The broker as a program in this process, before a fake cluster and a provider, and pods that ask it over TLS. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { broker } from '../../src/broker/program.ts';
import { type Clock, systemClock } from '../../src/platform/time/clock.ts';
import { FakeCluster, type FakePod } from '../callers/fake-cluster.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';
import { ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { until } from '../support/until.ts';

export const PROFILES = '/apis/token-sidecar.dev/v1alpha1/clustertokenprofiles';
export const NAMESPACES = '/api/v1/namespaces';
export const SECRETS = '/api/v1/namespaces/token-sidecar/secrets';
export const HOST = 'broker.token-sidecar.svc';

export type LogLine = Readonly<Record<string, unknown>>;

export interface Answered {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: {
    readonly access_token?: string;
    readonly expires_in?: number;
    readonly error?: string;
    readonly error_description?: string;
  };
}

export interface Asking {
  readonly path?: string;
  readonly form?: Readonly<Record<string, string | undefined>>;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
  readonly method?: string;
}

const authority = createCertificateAuthority('brokers');
export const CA = authority.cert;

/** Of a Secret, as the API has it. */
export function secret(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
  );
}

export async function startWorld(
  script?: Parameters<typeof ScriptedTokenEndpoint.start>[0],
  clock: Clock = systemClock,
) {
  const provider = await ScriptedTokenEndpoint.start(script);
  const cluster = await FakeCluster.start(clock);
  cluster.api.collections.add(PROFILES);
  cluster.api.collections.add(NAMESPACES);
  cluster.api.put(SECRETS, {
    metadata: { name: 'oauth' },
    data: secret({ client_id: 'shop', client_secret: 's3cret' }),
  });
  let generation = 0;
  function putProfile(name: string, spec: object): void {
    cluster.api.put(PROFILES, { metadata: { name, uid: `uid-${name}`, generation: ++generation }, spec });
  }
  const credential = {
    via: 'broker',
    tokenUrl: provider.url,
    clientAuth: 'client_secret_post',
    secret: { name: 'oauth' },
  };
  const spec = {
    namespaces: { names: ['shop'] },
    credentials: [credential],
    routes: [{ upstream: 'https://api.example.com' }],
  };
  putProfile('payments', spec);
  return { provider, cluster, clock, putProfile, credential, spec };
}

export type World = Awaited<ReturnType<typeof startWorld>>;

export async function runBroker({ cluster, clock }: World, settings: Readonly<Record<string, string>> = {}) {
  const directory = await mkdtemp(join(tmpdir(), 'token-sidecar-broker-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const { cert, key } = authority.issue('broker', HOST, '127.0.0.1');
  await writeFile(join(directory, 'tls.crt'), cert);
  await writeFile(join(directory, 'tls.key'), key);
  const abort = new AbortController();
  const seen: LogLine[] = [];
  const waiting = new Set<() => void>();
  const flags: Readonly<Record<string, string>> = {
    listen: '127.0.0.1:0',
    'admin-listen': '127.0.0.1:0',
    'log-level': 'trace',
    'tls-cert-file': join(directory, 'tls.crt'),
    'tls-key-file': join(directory, 'tls.key'),
    'secrets-dir': join(directory, 'secrets'),
    kubeconfig: await cluster.api.kubeconfig(),
    'drain-delay': '0s',
    ...settings,
  };
  const status = broker.run({
    args: Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]),
    env: {},
    stdout: { write: () => undefined },
    logOutput: {
      losses: { output: 0, repeated: 0 },
      write(text) {
        seen.push(JSON.parse(text) as LogLine);
        for (const wake of waiting) wake();
      },
    },
    stderr: { write: () => undefined },
    stdin: (async function* () {})(),
    shutdown: { signal: abort.signal, request: () => abort.abort(), takeHangups: () => undefined },
    clock,
  });
  onTestFinished(async () => {
    abort.abort();
    await status.catch(() => undefined);
  });
  async function logged(matches: (line: LogLine) => boolean): Promise<LogLine> {
    for (;;) {
      const found = seen.find(matches);
      if (found !== undefined) return found;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      await Promise.race([promise, status.then(() => Promise.reject(new Error('the broker has ended')))]);
      waiting.delete(resolve);
    }
  }
  const listening = await logged(({ msg }) => msg === 'listening');
  const port = Number(String(listening['listen']).split(':')[1]);
  const probe = async (path: string) => {
    const response = await fetch(`http://${listening['admin']}${path}`);
    return { status: response.status, text: await response.text() };
  };
  await until(async () => (await probe('/readyz')).status === 200);
  return {
    directory,
    status,
    seen,
    logged,
    port,
    probe,
    stop: () => abort.abort(),
    /** A form with the token of a pod, unless told otherwise. */
    ask(token: string, asking: Asking = {}, agent?: Agent): Promise<Answered> {
      return askBroker(port, token, asking, agent);
    },
    askAs(pod: FakePod, asking: Asking = {}): Promise<Answered> {
      return askBroker(port, cluster.token(pod), asking);
    },
  };
}

export function formOf(token: string, form: Asking['form'] = {}): string {
  const whole = {
    grant_type: 'client_credentials',
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: token,
    ...form,
  };
  const given = Object.entries(whole).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return new URLSearchParams(given).toString();
}

function askBroker(
  port: number,
  token: string,
  { path = '/token/payments/payments', form, headers, body = formOf(token, form), method = 'POST' }: Asking,
  agent: Agent | false = false,
): Promise<Answered> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path,
        method,
        ca: authority.cert,
        servername: HOST,
        agent,
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('error', reject);
        response.on('end', () => {
          const { statusCode = 0, headers: fields } = response;
          resolve({ status: statusCode, headers: fields, body: JSON.parse(text) as Answered['body'] });
        });
      },
    );
    sent.on('error', reject);
    sent.end(body);
  });
}
