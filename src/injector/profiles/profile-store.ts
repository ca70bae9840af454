/** Watches profiles and labels of namespaces. The last state outlives an outage of the API server. */

import { messageOf } from '../../platform/errors.ts';
import { type ApiObject, type KubernetesApi, statusOf } from '../../platform/kubernetes/api.ts';
import { type CollectionListener, watchCollection } from '../../platform/kubernetes/collection-watch.ts';
import type { Logger } from '../../platform/log/logger.ts';
import type { BackoffOptions } from '../../platform/time/async.ts';
import {
  keptStatus,
  PROFILE_API_VERSION,
  type ProfileIdentity,
  type ProfileKind,
  type ProfileSource,
  type ProfileStatus,
  type ValidatedProfile,
} from './profile.ts';

export interface KeptProfile {
  readonly uid: string;
  readonly judged: ValidatedProfile;
  readonly status: ReturnType<typeof keptStatus> | undefined;
}

export interface ProfileStore extends ProfileSource {
  /** Each collection has been read, or could not be. */
  settled(): boolean;
  all(): Iterable<KeptProfile>;
  close(): void;
}

interface ProfileStoreOptions extends BackoffOptions {
  readonly judge: (identity: ProfileIdentity, spec: unknown) => ValidatedProfile;
  readonly log: Logger;
}

interface ProfileObject extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly generation?: number };
  readonly spec?: unknown;
  readonly status?: ProfileStatus;
}

type Labels = Readonly<Record<string, string>>;

interface Counted extends KeptProfile {
  /** Room for the judged profile. Without enough, that is its only problem. */
  readonly characters: number;
  readonly fits: boolean;
}

interface NamespaceObject extends ApiObject {
  readonly metadata: ApiObject['metadata'] & { readonly labels?: Labels };
}

const ROOT = `/apis/${PROFILE_API_VERSION}`;
export const PLURALS: Readonly<Record<ProfileKind, string>> = {
  TokenProfile: 'tokenprofiles',
  ClusterTokenProfile: 'clustertokenprofiles',
};

const NAMESPACES = '/api/v1/namespaces';
/** A profile may have 1.5 MiB, and takes several times that while decoded. */
const PAGE = 20;
/** Per collection. */
const MAX_KEPT = 10_000;
/** Per invalid profile. */
const MAX_PROBLEMS = 20;
/** Characters: a namespace with more is matched by no selector. */
const MAX_LABELS_LENGTH = 2048;
/** All are listed again if one was left out and room has been freed since. */
const LISTED_ANEW_AFTER_MS = 300_000;

export function watchProfiles(api: KubernetesApi, options: ProfileStoreOptions): ProfileStore {
  const namespaced = watchKind(api, 'TokenProfile', options);
  const ofCluster = watchKind(api, 'ClusterTokenProfile', options);
  const namespaces = watchLabels(api, options);
  const all = [namespaced, ofCluster, namespaces];
  return {
    unread: () => namespaced.unread() ?? ofCluster.unread(),
    namespaced: (namespace, name) => namespaced.get(keyOf({ namespace, name }))?.judged,
    cluster: (name) => ofCluster.get(keyOf({ name }))?.judged,
    labels: (name) => namespaces.get(keyOf({ name })),
    settled: () => all.every((each) => each.settled()),
    *all() {
      yield* namespaced.values();
      yield* ofCluster.values();
    },
    close: () => {
      for (const each of all) each.close();
    },
  };
}

/** With labels of namespaces: what the broker may read. */
export function watchClusterProfiles(
  api: KubernetesApi,
  options: ProfileStoreOptions,
): ProfileSource & Pick<ProfileStore, 'settled' | 'close'> {
  const ofCluster = watchKind(api, 'ClusterTokenProfile', options);
  const namespaces = watchLabels(api, options);
  return {
    unread: () => ofCluster.unread() ?? namespaces.unread(),
    namespaced: () => undefined,
    cluster: (name) => ofCluster.get(keyOf({ name }))?.judged,
    labels: (name) => namespaces.get(keyOf({ name })),
    settled: () => ofCluster.settled() && namespaces.settled(),
    close() {
      ofCluster.close();
      namespaces.close();
    },
  };
}

function watchLabels(api: KubernetesApi, options: ProfileStoreOptions) {
  return keepCollection<NamespaceObject, Labels>(api, NAMESPACES, options, {
    reduce({ metadata: { labels = {} } }) {
      return JSON.stringify(labels).length > MAX_LABELS_LENGTH ? undefined : labels;
    },
    forget: () => undefined,
  });
}

function watchKind(api: KubernetesApi, kind: ProfileKind, options: ProfileStoreOptions) {
  const room = createProfileRoom();
  return keepCollection<ProfileObject, Counted>(api, `${ROOT}/${PLURALS[kind]}`, options, {
    reduce({ metadata, spec, status: found }, before, leftOut) {
      const { name = '', namespace, uid = '', generation = 0 } = metadata;
      const identity = { kind, name, ...(namespace === undefined ? {} : { namespace }), generation };
      const status = found === undefined ? undefined : keptStatus(found);
      if (before === undefined) {
        if (!room.mayHaveAnother(namespace)) {
          options.log.error({ kind, namespace, name }, 'profile not kept: its namespace has too many');
          leftOut();
          return undefined;
        }
        room.counted(namespace, 1);
      } else if (before.fits) room.give(namespace, before.characters);
      const isSame = before?.uid === uid && before.judged.identity.generation === generation;
      const stillNone = isSame && !before.fits ? room.refuses(namespace, before.characters) : undefined;
      if (isSame && stillNone !== undefined) {
        leftOut();
        return { ...before, judged: tooMany(identity, stillNone), status };
      }
      const judged = isSame && before.fits ? before.judged : withFirstProblems(options.judge(identity, spec));
      const characters = charactersOf(judged, spec);
      const refusal = room.refuses(namespace, characters);
      if (refusal === undefined) {
        room.take(namespace, characters);
        return { uid, judged, status, fits: true, characters };
      }
      options.log.error({ kind, namespace, name }, 'profile not kept: there are too many');
      leftOut();
      return { uid, judged: tooMany(identity, refusal), status, fits: false, characters };
    },
    forget({ judged, characters, fits }) {
      const { namespace } = judged.identity;
      if (fits) room.give(namespace, characters);
      room.counted(namespace, -1);
    },
  });
}

/** Of an invalid profile only problems and namespaces are kept. */
function charactersOf(judged: ValidatedProfile, spec: unknown): number {
  return JSON.stringify(judged.state === 'valid' ? spec : [judged.problems, judged.namespaces]).length;
}

function withFirstProblems(judged: ValidatedProfile): ValidatedProfile {
  if (judged.state === 'valid' || judged.problems.length <= MAX_PROBLEMS) return judged;
  return { ...judged, problems: judged.problems.slice(0, MAX_PROBLEMS) };
}

function tooMany(identity: ProfileIdentity, refusal: string): ValidatedProfile {
  const expected = `fewer or smaller profiles: ${refusal}`;
  return { state: 'invalid', identity, namespaces: {}, problems: [{ key: 'metadata.name', expected }] };
}

interface Reduction<T, Kept> {
  /**
   * Returns what is kept, or undefined for nothing.
   * @param leftOut called if there is no room for it.
   */
  reduce(object: T, before: Kept | undefined, leftOut: () => void): Kept | undefined;
  forget(before: Kept): void;
}

function keepCollection<T extends ApiObject, Kept>(
  api: KubernetesApi,
  path: string,
  options: ProfileStoreOptions,
  { reduce, forget }: Reduction<T, Kept>,
) {
  const kept = new Map<string, Kept>();
  let listed: Set<string> | undefined;
  let state: { readonly is: 'unread' | 'read' } | { readonly is: 'failed'; readonly why: string } = {
    is: 'unread',
  };
  /** An object was left out. */
  let lacksRoom = false;
  let cancelListing: (() => void) | undefined;

  function leftOut(): void {
    lacksRoom = true;
  }

  /** An object that was left out sends no event until it changes. */
  function roomGivenBack(): void {
    if (!lacksRoom) return;
    cancelListing ??= options.clock.after(LISTED_ANEW_AFTER_MS, () => {
      cancelListing = undefined;
      lacksRoom = false;
      unwatch();
      unwatch = watch();
    });
  }

  function drop(key: string): void {
    const before = kept.get(key);
    if (before !== undefined) {
      forget(before);
      roomGivenBack();
    }
    kept.delete(key);
  }

  const listener: CollectionListener<T> = {
    begun() {
      listed = new Set();
    },
    seen(object) {
      const key = keyOf(object.metadata);
      listed?.add(key);
      const before = kept.get(key);
      if (before === undefined && kept.size >= MAX_KEPT) {
        const { namespace, name } = object.metadata;
        options.log.error({ path, namespace, name }, `not kept: there are more than ${MAX_KEPT}`);
        leftOut();
        return;
      }
      // A changed object may have become smaller.
      if (before !== undefined && listed === undefined) roomGivenBack();
      const next = reduce(object, before, leftOut);
      if (next === undefined) kept.delete(key);
      else kept.set(key, next);
    },
    gone: ({ metadata }) => drop(keyOf(metadata)),
    listed() {
      for (const key of kept.keys()) if (listed?.has(key) !== true) drop(key);
      listed = undefined;
      state = { is: 'read' };
    },
    failed(error) {
      // Without definitions there are no profiles.
      const isMissing = statusOf(error) === 404;
      if (isMissing) for (const key of [...kept.keys()]) drop(key);
      if (state.is !== 'read' || isMissing) {
        const why = isMissing
          ? `${path}: their definition is not installed (crds.enabled of the chart)`
          : messageOf(error);
        state = { is: 'failed', why };
      }
    },
  };
  const watch = (): (() => void) => watchCollection<T>(api, path, { limit: PAGE }, options, listener);
  let unwatch = watch();

  return {
    close() {
      cancelListing?.();
      unwatch();
    },
    get: (key: string) => kept.get(key),
    values: () => kept.values(),
    settled: () => state.is !== 'unread',
    unread(): string | undefined {
      if (state.is === 'read') return undefined;
      return state.is === 'failed' ? state.why : 'they are being read; try again in a moment';
    },
  };
}

function keyOf({
  namespace = '',
  name = '',
}: {
  readonly namespace?: string;
  readonly name?: string;
}): string {
  return `${namespace}/${name}`;
}

// Bounds what is kept, so that no namespace takes the room of others.

/** In total. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Per namespace. */
const MAX_OF_NAMESPACE = { profiles: 1250, characters: MAX_CHARACTERS / 8 };

interface ProfileRoom {
  mayHaveAnother(namespace: string | undefined): boolean;
  /** Undefined if there is room. */
  refuses(namespace: string | undefined, characters: number): string | undefined;
  take(namespace: string | undefined, characters: number): void;
  give(namespace: string | undefined, characters: number): void;
  counted(namespace: string | undefined, change: 1 | -1): void;
}

interface Held {
  readonly profiles: number;
  readonly characters: number;
}

const NONE: Held = { profiles: 0, characters: 0 };

/** Only the total bounds profiles without a namespace. */
function createProfileRoom(): ProfileRoom {
  let total = 0;
  const byNamespace = new Map<string, Held>();

  function add(namespace: string | undefined, { profiles, characters }: Held): void {
    total += characters;
    if (namespace === undefined) return;
    const before = byNamespace.get(namespace) ?? NONE;
    const after = { profiles: before.profiles + profiles, characters: before.characters + characters };
    if (after.profiles === 0 && after.characters === 0) byNamespace.delete(namespace);
    else byNamespace.set(namespace, after);
  }

  const heldBy = (namespace: string | undefined): Held =>
    (namespace === undefined ? undefined : byNamespace.get(namespace)) ?? NONE;

  return {
    mayHaveAnother: (namespace) => heldBy(namespace).profiles < MAX_OF_NAMESPACE.profiles,
    refuses(namespace, characters) {
      if (total + characters > MAX_CHARACTERS) return `of one kind ${MAX_CHARACTERS} characters are kept`;
      const isOfNamespace = namespace !== undefined;
      if (isOfNamespace && heldBy(namespace).characters + characters > MAX_OF_NAMESPACE.characters) {
        return `of one namespace ${MAX_OF_NAMESPACE.characters} characters are kept`;
      }
      return undefined;
    },
    take: (namespace, characters) => add(namespace, { profiles: 0, characters }),
    give: (namespace, characters) => add(namespace, { profiles: 0, characters: -characters }),
    counted: (namespace, change) => add(namespace, { profiles: change, characters: 0 }),
  };
}
