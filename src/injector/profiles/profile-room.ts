/**
 * Bounds how much is kept of the profiles of one kind: in total, and per namespace, so that none takes the room of the
 * others.
 */

/** Characters kept in total. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Per namespace. */
const MAX_OF_NAMESPACE = { profiles: 1250, characters: MAX_CHARACTERS / 8 };

interface ProfileRoom {
  /** Whether the namespace may have another profile at all. */
  mayHaveAnother(namespace: string | undefined): boolean;
  /** Which bound is exceeded; undefined if there is room for that many characters. */
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

/** Profiles without a namespace are the operator's: only the total bounds them. */
export function createProfileRoom(): ProfileRoom {
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
