/** AdmissionReview of admission.k8s.io/v1: the API server's request and the answer that it understands. */

import type { JsonPatch } from './pod/json-patch.ts';
import type { Pod } from './pod/pod.ts';

export interface AdmissionRequest {
  readonly uid: string;
  readonly namespace: string;
  /** The operation must change nothing but the answer: no Events. */
  readonly dryRun: boolean;
  /** Undefined if the review is not about the creation of a pod. */
  readonly pod: Pod | undefined;
}

interface AdmissionVerdict {
  readonly allowed: boolean;
  readonly patch?: JsonPatch;
  /** Why not; shown to the pod's creator. */
  readonly message?: string;
  /** Printed by kubectl. */
  readonly warnings?: readonly string[];
  /** Kept in the API server's audit log, under the webhook's name. */
  readonly audit?: Readonly<Record<string, string>>;
}

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';

/** The request in a review's body, or what is wrong with the body. */
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

/** The body of the answer. */
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

/** No Kubernetes name is longer; a longer one would only fill the log. */
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

/** The API server has validated nothing yet, but it has decoded: lists are lists and texts are texts. */
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

// Bounds what parsing a JSON text would cost, without parsing it.

/** A pod's own fields nest some fifteen levels deep, its managed fields as many again. */
const MAX_DEPTH = 64;

/** A pod of the largest size that etcd accepts, filled with short variables, has half as many. */
const MAX_VALUES = 200_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Why these bytes of JSON must not be parsed, or undefined. Four megabytes of brackets would become a hundred of
 * objects, and block the event loop for most of a second. Whether they are JSON at all is left to the parser.
 */
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

/** Index of the quote that ends the string beginning at `start`, or of the last byte. */
function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}
