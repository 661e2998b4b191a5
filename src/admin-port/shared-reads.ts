/** How long a result is shared by all requests for it after it was read, in ms. */
const sharedMs = 5000;

interface Reading<Answer> {
  answer: Promise<Answer>;
  /** Undefined while the read is under way. */
  answeredAt?: number;
}

/**
 * Shares reads among all scrapes and open pages: however many ask for the same, by `idOf`, there is one read of it at a
 * time, and none for five seconds after that. A failed read is not kept.
 */
export function shareReads<Question, Answer>(
  read: (question: Question) => Promise<Answer>,
  now: () => number,
  idOf: (question: Question) => string = () => '',
): (question: Question) => Promise<Answer> {
  const readings = new Map<string, Reading<Answer>>();
  return async (question) => {
    const at = now();
    for (const [old, { answeredAt = at }] of readings) {
      // The age is negative if the clock was set back.
      if (Math.abs(at - answeredAt) >= sharedMs) readings.delete(old);
    }
    const id = idOf(question);
    const reading: Reading<Answer> = readings.get(id) ?? { answer: read(question) };
    readings.set(id, reading);
    try {
      const answer = await reading.answer;
      reading.answeredAt ??= now();
      return answer;
    } catch (error) {
      if (readings.get(id) === reading) readings.delete(id);
      throw error;
    }
  };
}
