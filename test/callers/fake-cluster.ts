/** A cluster that signs service account tokens, publishes its keys and reviews tokens, behind a fake API server over TLS. */

import { createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { exportJWK, jwtVerify } from 'jose';
import type { Clock } from '../../src/platform/time/clock.ts';
import { type Answer, FakeKubernetes } from '../integration/injector/fake-kubernetes.ts';

export const AUDIENCE = 'token-sidecar-broker';
export const REVIEWS = 'POST /apis/authentication.k8s.io/v1/tokenreviews';
const ISSUER = 'https://kubernetes.default.svc.cluster.local';

interface Key {
  readonly kid: string;
  readonly alg: 'ES256' | 'RS256';
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

interface Review {
  readonly spec: { readonly token: string; readonly audiences: readonly string[] };
}

export interface FakePod {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly name: string;
  readonly uid: string;
}

export interface TokenChanges {
  readonly header?: object;
  readonly claims?: object;
  /** Instead of the cluster's newest. */
  readonly key?: Key;
}

function makeKey(alg: Key['alg'], kid: string = randomUUID()): Key {
  return { kid, alg, ...(alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : rsa()) };
}

function rsa() {
  return generateKeyPairSync('rsa', { modulusLength: 2048 });
}

export class FakeCluster {
  readonly api: FakeKubernetes;
  readonly #clock: Clock;
  keys: readonly Key[];
  readonly #living = new Set<string>();
  /** Tokens that were reviewed, in the order of coming. */
  readonly reviewed: string[] = [];
  /** What a review says in the place of the truth. */
  review: ((status: object) => Answer) | undefined;

  private constructor(api: FakeKubernetes, clock: Clock, key: Key) {
    this.api = api;
    this.#clock = clock;
    this.keys = [key];
  }

  static async start(clock: Clock, alg: Key['alg'] = 'ES256', kid?: string): Promise<FakeCluster> {
    const api = await FakeKubernetes.start('https');
    const cluster = new FakeCluster(api, clock, makeKey(alg, kid));
    api.answers.set('GET /.well-known/openid-configuration', () => ({
      code: 200,
      value: { issuer: ISSUER, jwks_uri: 'https://nowhere.invalid/openid/v1/jwks' },
    }));
    api.answers.set(REVIEWS, (body) => cluster.#review(body as Review));
    await cluster.publishKeys();
    return cluster;
  }

  /** Signs with a new key from now on. */
  async rotate(alg: Key['alg'] = 'RS256'): Promise<void> {
    this.keys = [...this.keys, makeKey(alg)];
    await this.publishKeys();
  }

  async dropOldKeys(): Promise<void> {
    this.keys = this.keys.slice(-1);
    await this.publishKeys();
  }

  async publishKeys(): Promise<void> {
    const keys = await Promise.all(
      this.keys.map(async ({ kid, alg, publicKey }) => ({
        ...(await exportJWK(publicKey)),
        kid,
        alg,
        use: 'sig',
      })),
    );
    this.api.answers.set('GET /openid/v1/jwks', () => ({ code: 200, value: { keys } }));
  }

  pod(namespace: string, serviceAccount: string, name = `${serviceAccount}-0`): FakePod {
    const pod = { namespace, serviceAccount, name, uid: randomUUID() };
    this.#living.add(pod.uid);
    return pod;
  }

  deletePod({ uid }: FakePod): void {
    this.#living.delete(uid);
  }

  claims({ namespace, serviceAccount, name, uid }: FakePod): Record<string, unknown> {
    const nowSeconds = Math.floor(this.#clock.now().wallMs / 1000);
    return {
      aud: [AUDIENCE],
      exp: nowSeconds + 3600,
      iat: nowSeconds,
      nbf: nowSeconds,
      iss: ISSUER,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace,
        node: { name: 'node-1', uid: 'node-uid' },
        pod: { name, uid },
        serviceaccount: { name: serviceAccount, uid: `uid-of-${serviceAccount}` },
      },
      sub: `system:serviceaccount:${namespace}:${serviceAccount}`,
    };
  }

  /** A token as the kubelet projects it. */
  token(pod: FakePod, { header, claims, key = this.keys.at(-1) as Key }: TokenChanges = {}): string {
    const text = [
      { alg: key.alg, kid: key.kid, ...header },
      { ...this.claims(pod), ...claims },
    ]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const signature = sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  }

  /** The well-known trick: the public key as the secret of a symmetric algorithm. */
  hmacToken(pod: FakePod): string {
    const key = this.keys.at(-1) as Key;
    const text = [{ alg: 'HS256', kid: key.kid }, this.claims(pod)]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    const secret = key.publicKey.export({ type: 'spki', format: 'pem' });
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
  }

  async #review({ spec: { token, audiences } }: Review) {
    this.reviewed.push(token);
    const status = await this.#statusOf(token, audiences);
    if (this.review !== undefined) return this.review(status);
    // The API server gives back what it was sent.
    return { code: 201, value: { kind: 'TokenReview', spec: { token, audiences }, status } };
  }

  async #statusOf(token: string, audiences: readonly string[]): Promise<object> {
    const claims = await this.#signedClaims(token);
    if (claims === undefined) return { authenticated: false, error: 'invalid bearer token' };
    const { namespace, serviceaccount, pod } = claims['kubernetes.io'] as {
      readonly namespace: string;
      readonly serviceaccount: { readonly name: string };
      readonly pod?: { readonly name: string; readonly uid: string };
    };
    if (pod !== undefined && !this.#living.has(pod.uid)) {
      return { authenticated: false, error: 'service account token has been invalidated' };
    }
    return {
      authenticated: true,
      audiences: audiences.filter((one) => (claims['aud'] as string[]).includes(one)),
      user: {
        username: `system:serviceaccount:${namespace}:${serviceaccount.name}`,
        groups: ['system:serviceaccounts'],
        extra: pod === undefined ? {} : { 'authentication.kubernetes.io/pod-uid': [pod.uid] },
      },
    };
  }

  async #signedClaims(token: string): Promise<Record<string, unknown> | undefined> {
    for (const { publicKey } of this.keys) {
      const verified = await jwtVerify(token, publicKey, {
        currentDate: new Date(this.#clock.now().wallMs),
        // Its clock is not that of who asks.
        clockTolerance: 60,
      }).catch(() => undefined);
      if (verified !== undefined) return verified.payload as Record<string, unknown>;
    }
    return undefined;
  }
}
