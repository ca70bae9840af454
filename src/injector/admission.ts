/** Answers admission reviews (AdmissionReview of admission.k8s.io/v1). */

import type { OwnerReference } from '../platform/kubernetes/api.ts';
import type { Logger } from '../platform/log/logger.ts';
import type { Clock } from '../platform/time/clock.ts';
import type { InjectionDefaults } from './injection-defaults.ts';
import type { InjectorMetrics } from './metrics.ts';
import { ANNOTATION } from './pod/annotations.ts';
import type { Cluster } from './pod/cluster.ts';
import { hasSidecar, type Injection, inject, SYSTEM_NAMESPACES } from './pod/inject.ts';
import type { JsonPatch } from './pod/json-patch.ts';
import { controllerOf, type Pod } from './pod/pod.ts';
import { secretMissing } from './pod/validation-errors.ts';

interface AdmissionResponse {
  readonly status: number;
  readonly body: string;
}

/** Any pod can forge a review, so the answer to an unverified one depends only on it and the settings. */
export type Caller = 'api_server' | 'unverified';

/** Never rejects. */
export type Webhook = (body: Buffer, caller: Caller) => Promise<AdmissionResponse>;

export interface ClusterContact {
  /** Undefined if unknown. Asked only for a verified API server. */
  secretExists?(namespace: string, name: string): Promise<boolean | undefined>;
  /** Tells the owner what is wrong. Never waits or fails. */
  lookAtOwner?(owner: OwnerReference, namespace: string): void;
}

interface AdmissionOptions {
  readonly defaults: InjectionDefaults;
  /** Read anew for each pod, since clusters are upgraded. */
  readonly cluster: () => Cluster;
  readonly contact: ClusterContact;
  readonly metrics: InjectorMetrics;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createMutatingWebhook(options: AdmissionOptions): Webhook {
  const { defaults, cluster, contact, log } = options;

  async function admit(
    { uid, namespace, dryRun, pod }: AdmissionRequest,
    caller: Caller,
  ): Promise<AuthenticationResult> {
    if (pod === undefined) return ignored(uid);
    const injection = inject(pod, { name: namespace }, defaults, cluster());
    const { result, reason } = injection;
    const named = {
      namespace,
      pod: pod.metadata?.name ?? pod.metadata?.generateName,
      result,
      reason,
      dryRun,
    };
    if (injection.result === 'rejected') {
      log.warn({ ...named, message: injection.message }, 'pod refused');
      const body = admissionResponse(uid, { allowed: false, message: injection.message });
      return { counted: { result, reason }, body };
    }
    const missing = caller === 'api_server' ? await missingSecrets(injection, namespace) : [];
    const warnings = [...injection.warnings, ...missing];
    const level = reason === 'not_requested' ? 'debug' : 'info';
    log[level]({ ...named, ...(warnings.length === 0 ? {} : { warnings }) }, 'pod admitted');
    const owner = controllerOf(pod);
    const isWorthALook =
      injection.result === 'skipped' ? injection.warnings.length > 0 : contact.secretExists !== undefined;
    if (owner !== undefined && !dryRun && isWorthALook) contact.lookAtOwner?.(owner, namespace);
    const counted = { result, reason };
    const patch = injection.result === 'injected' ? injection.patch : [];
    return { counted, body: admissionResponse(uid, { allowed: true, patch, warnings, audit: counted }) };
  }

  async function missingSecrets(injection: Injection, namespace: string): Promise<readonly string[]> {
    const secrets = injection.result === 'injected' ? injection.secrets : [];
    const exist = await Promise.all(secrets.map((name) => contact.secretExists?.(namespace, name)));
    return secrets.filter((_, index) => exist[index] === false).map((name) => secretMissing(name, namespace));
  }

  return answering(options, admit);
}

/** Refuses pods that asked for the sidecar and did not get it. Runs after all mutation. */
export function createValidatingWebhook(options: AdmissionOptions): Webhook {
  const { log } = options;
  return answering(options, async ({ uid, namespace, pod }) => {
    const asked = pod?.metadata?.annotations?.[ANNOTATION.inject] ?? 'false';
    if (pod === undefined || asked === 'false' || SYSTEM_NAMESPACES.includes(namespace) || hasSidecar(pod)) {
      return { body: admissionResponse(uid, { allowed: true }) };
    }
    const message =
      'token-sidecar: the pod asks for the sidecar and did not get it: the injector did not answer or skipped the pod';
    log.warn(
      { namespace, pod: pod.metadata?.name ?? pod.metadata?.generateName },
      'pod without its sidecar refused',
    );
    return {
      counted: { result: 'rejected', reason: 'not_injected' },
      body: admissionResponse(uid, { allowed: false, message }),
    };
  });
}

interface AuthenticationResult {
  readonly body: string;
  readonly counted?: { readonly result: Injection['result']; readonly reason: string };
}

function ignored(uid: string): AuthenticationResult {
  return {
    counted: { result: 'skipped', reason: 'not_a_new_pod' },
    body: admissionResponse(uid, { allowed: true }),
  };
}

/** An unexpected error is a 500, so that failurePolicy decides. */
function answering(
  { metrics, clock, log }: AdmissionOptions,
  admit: (request: AdmissionRequest, caller: Caller) => Promise<AuthenticationResult>,
): Webhook {
  return async (review, caller) => {
    const startedAt = clock.now();
    const seconds = (): number => (clock.now().monotonicMs - startedAt.monotonicMs) / 1000;
    const request = parseAdmissionReview(review);
    if (typeof request === 'string') {
      metrics.admitted('error', 'malformed', seconds());
      // Anybody can send these: the metric counts them all.
      log.error({ reason: request }, 'admission review not understood');
      return { status: 400, body: request };
    }
    try {
      const { counted, body } = await admit(request, caller);
      if (counted !== undefined) metrics.admitted(counted.result, counted.reason, seconds());
      return { status: 200, body };
    } catch (error) {
      metrics.admitted('error', 'internal', seconds());
      log.error({ err: error }, 'admission review failed');
      return { status: 500, body: 'internal error' };
    }
  };
}

interface AdmissionRequest {
  readonly uid: string;
  readonly namespace: string;
  /** If true, no Events are written. */
  readonly dryRun: boolean;
  /** Undefined unless a pod is to be created. */
  readonly pod: Pod | undefined;
}

interface AdmissionVerdict {
  readonly allowed: boolean;
  readonly patch?: JsonPatch;
  /** Shown to the pod's creator. */
  readonly message?: string;
  /** Printed by kubectl. */
  readonly warnings?: readonly string[];
  /** For the API server's audit log. */
  readonly audit?: Readonly<Record<string, string>>;
}

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';

export function parseAdmissionReview(body: Buffer): AdmissionRequest | string {
  const beyond = beyondJsonBounds(body);
  if (beyond !== undefined) return beyond;
  let review: unknown;
  try {
    review = JSON.parse(body.toString('utf8'));
  } catch {
    return 'the body is not JSON';
  }
  if (!isObject(review) || review['apiVersion'] !== API_VERSION || review['kind'] !== KIND) {
    return `the body is no ${KIND} of ${API_VERSION}`;
  }
  const request = review['request'];
  if (!isObject(request) || !isName(request['uid']) || request['uid'] === '') {
    return 'the review has no request with a uid';
  }
  const namespace = request['namespace'] ?? '';
  if (!isName(namespace)) return 'the namespace of the review is no name';
  const isPod =
    isObject(request['kind']) && request['kind']['group'] === '' && request['kind']['kind'] === 'Pod';
  const isMade = request['operation'] === 'CREATE' && (request['subResource'] ?? '') === '';
  const object = request['object'];
  if (isPod && isMade && !isPodShaped(object)) return "the review's object does not have the shape of a Pod";
  return {
    uid: request['uid'],
    namespace,
    dryRun: request['dryRun'] === true,
    pod: isPod && isMade ? (object as Pod) : undefined,
  };
}

export function admissionResponse(uid: string, verdict: AdmissionVerdict): string {
  const { allowed, patch = [], message, warnings = [], audit } = verdict;
  return JSON.stringify({
    apiVersion: API_VERSION,
    kind: KIND,
    response: {
      uid,
      allowed,
      ...(patch.length === 0
        ? {}
        : { patchType: 'JSONPatch', patch: Buffer.from(JSON.stringify(patch)).toString('base64') }),
      ...(message === undefined ? {} : { status: { code: 403, reason: 'Forbidden', message } }),
      ...(warnings.length === 0 ? {} : { warnings }),
      auditAnnotations: audit,
    },
  });
}

/** The longest Kubernetes name. */
const MAX_NAME = 253;

function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_NAME;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isOwner(value: unknown): boolean {
  return isObject(value) && ['apiVersion', 'kind', 'name', 'uid'].every((key) => isName(value[key]));
}

function isPodShaped(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { metadata, spec } = value;
  if (!isObject(metadata) || !isObject(spec)) return false;
  if (![metadata['name'], metadata['generateName']].every((name) => name == null || isName(name)))
    return false;
  const owners = metadata['ownerReferences'] ?? [];
  if (!Array.isArray(owners) || !owners.every(isOwner)) return false;
  const annotations = metadata['annotations'] ?? {};
  if (!isObject(annotations) || Object.values(annotations).some((text) => typeof text !== 'string'))
    return false;
  return ['containers', 'initContainers', 'volumes'].every((name) => {
    const list = spec[name] ?? [];
    return Array.isArray(list) && list.every(isObject);
  });
}

/** A pod's fields nest fifteen levels deep, managed fields as many again. */
const MAX_DEPTH = 64;

/** Twice what the largest pod has. */
const MAX_VALUES = 200_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Why these bytes must not be parsed: four megabytes of brackets would become a hundred of objects, and block the event loop. */
export function beyondJsonBounds(bytes: Uint8Array): string | undefined {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at);
        break;
      case 0x7b: // {
      case 0x5b: // [
        values++;
        if (++depth > MAX_DEPTH) return `the JSON is more than ${MAX_DEPTH} levels deep`;
        break;
      case 0x7d: // }
      case 0x5d: // ]
        depth--;
        break;
      case 0x2c: // ,
        values++;
        break;
    }
    if (values > MAX_VALUES) return `the JSON has more than ${MAX_VALUES} values`;
  }
  return undefined;
}

/** Index of the closing quote, or of the last byte. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
