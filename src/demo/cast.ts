/** Who plays in the demo, and what they do: nine agents that edit a shop's code, as plain data. Three more are in mishaps.ts. */

export interface Job {
  readonly purpose: string;
  /** In the repository `shop`; changed. */
  readonly writes: readonly string[];
  readonly reads?: readonly string[];
  readonly seconds: number;
}

export interface Editor {
  readonly name: string;
  readonly model: string;
  readonly jobs: readonly Job[];
}

/** The cart and the login are wanted by many. That is where the fleet has to take turns. */
export const editors: readonly Editor[] = [
  {
    name: "ada",
    model: "large",
    jobs: [
      { purpose: "rename login() to signIn()", writes: ["src/auth/login.ts", "src/auth/session.ts"], seconds: 9 },
      { purpose: "expire idle sessions", writes: ["src/auth/session.ts"], reads: ["src/config.ts"], seconds: 6 },
    ],
  },
  {
    name: "ben",
    model: "small",
    jobs: [
      { purpose: "test the login", writes: ["test/login.test.ts"], reads: ["src/auth/**"], seconds: 7 },
      { purpose: "test the cart", writes: ["test/cart.test.ts"], reads: ["src/checkout/**"], seconds: 6 },
    ],
  },
  {
    name: "cleo",
    model: "small",
    jobs: [
      { purpose: "document the API", writes: ["docs/api.md"], reads: ["src/api/**"], seconds: 10 },
      { purpose: "document settings", writes: ["docs/settings.md"], reads: ["src/config.ts"], seconds: 5 },
    ],
  },
  {
    name: "dev",
    model: "large",
    jobs: [
      { purpose: "page through orders", writes: ["src/api/orders.ts"], reads: ["src/db/orders.ts"], seconds: 8 },
      { purpose: "limit search results", writes: ["src/api/search.ts", "src/config.ts"], seconds: 6 },
    ],
  },
  {
    name: "eli",
    model: "large",
    jobs: [
      { purpose: "add vouchers", writes: ["src/checkout/cart.ts", "src/checkout/total.ts"], seconds: 9 },
      { purpose: "round totals once", writes: ["src/checkout/total.ts"], seconds: 5 },
    ],
  },
  {
    name: "fay",
    model: "medium",
    jobs: [{ purpose: "split the cart", writes: ["src/checkout/cart.ts"], reads: ["src/db/**"], seconds: 8 }],
  },
  {
    name: "gus",
    model: "medium",
    jobs: [{ purpose: "index orders by day", writes: ["src/db/orders.ts", "src/db/schema.sql"], seconds: 7 }],
  },
  {
    name: "kim",
    model: "medium",
    jobs: [
      { purpose: "move checkout to the new client", writes: ["src/checkout/**"], seconds: 6 },
      { purpose: "tidy settings", writes: ["src/config.ts"], seconds: 4 },
    ],
  },
  {
    name: "lou",
    model: "small",
    jobs: [{ purpose: "measure the login", writes: ["src/auth/login.ts"], reads: ["src/config.ts"], seconds: 5 }],
  },
];

export const taskSummaries = [
  "build the image",
  "check the licences",
  "translate the help",
  "resize the pictures",
  "draft the release notes",
  "compare the prices",
] as const;
